package cli

import (
	"strings"
	"testing"
)

const peerDoc = `{"peer":{"peer_id":"peer_1","name":"windows","hub_id":"hub_1","fingerprint":"hub_1","knows_fingerprint":"hub_2","addresses":[],"role":"worker","state":"active","reverse":false,"grants":{"verbs":[],"repos":[],"max_workers":0},"store_id":"store_1","store_epoch":1,"contracts":[],"features":[],"created_at":"t"},"link":{LINK},"holds":{"workers":0,"dispatches":0,"stranded":[]},"relay":{"queued_items":0,"queued_bytes":0,"parked":[],"parked_count":0}}`

// TestPeerShowSaysOfALinkWhatIsKnown: since when it is up, or at which stage it failed.
func TestPeerShowSaysOfALinkWhatIsKnown(t *testing.T) {
	h := newHub(t)
	for link, want := range map[string]string{
		`"state":"up","transport":"direct","stage":null,"last_error":null,"connected_at":"noon","parked":0`:       "link up, direct, since noon\n",
		`"state":"down","transport":"reverse","stage":"dial","last_error":"no","connected_at":null,"parked":0`:    "link down, reverse, stage dial\n",
		`"state":"connecting","transport":"direct","stage":null,"last_error":null,"connected_at":null,"parked":0`: "link connecting, direct\n",
	} {
		h.on("GET /v1/peers/windows", 200, strings.Replace(peerDoc, "LINK", link, 1))
		wavehub(t, "peer", "show", "windows").want(t, 0, want)
	}
}
