package relay

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/testkit"
	"github.com/wavehub/wavehub/relay/wire"
)

// frames cuts fuzzed bytes into frames, each behind its length, and gives each
// its digest, so that what is fuzzed is what a liar may send.
func frames(raw []byte) (out [][]byte) {
	for len(raw) >= 2 {
		n := min(int(binary.BigEndian.Uint16(raw)), len(raw)-2)
		f := raw[2 : 2+n : 2+n]
		out = append(out, binary.BigEndian.AppendUint32(f, crc32.Checksum(f, crc32.MakeTable(crc32.Castagnoli))))
		raw = raw[2+n:]
	}
	return out
}

func framed(t testing.TB, fs ...wire.Frame) (out []byte) {
	t.Helper()
	for _, f := range fs {
		raw, err := wire.Encode(nil, f)
		if err != nil {
			t.Fatal(err)
		}
		raw = raw[:len(raw)-4] // the digest is given again
		out = append(binary.BigEndian.AppendUint16(out, uint16(len(raw))), raw...)
	}
	return out
}

// FuzzSession feeds a session whatever a peer may send behind its hello. It ends or
// goes on; it never panics, never lets an ack through that is beyond what was sent,
// and frees all that it holds.
func FuzzSession(f *testing.F) {
	const d = hub.DispatchID("dispatch_00000000000000000000000001")
	item := func(seq int64) hub.Item {
		return hub.Item{Pos: seq, Seq: seq, Dispatch: d, ID: "msg_00000000000000000000000001", Kind: hub.ItemMessage, Payload: []byte("{}")}
	}
	f.Add(framed(f, wire.Items{Items: []hub.Item{item(1), item(3)}}, wire.Items{Items: []hub.Item{item(2)}}))
	f.Add(framed(f, wire.Items{Items: []hub.Item{item(9)}}, wire.Kept{From: []hub.Want{{Dispatch: d, Seq: 7}}}, wire.Items{Items: []hub.Item{item(7), item(8)}}))
	f.Add(framed(f, wire.Acks{Acks: []hub.Ack{{Dispatch: d, Parked: hub.ParkedConflict}, {Dispatch: d, Seq: 1}}}))
	f.Add(framed(f, wire.Wants{Wants: []hub.Want{{Dispatch: d, Seq: 1, Until: 3}}}, wire.Credit{Bytes: 1 << 40}, wire.Ping{IntervalMS: 1}, wire.Pong{}, wire.Goodbye{Code: "x"}))
	future := item(1)
	future.Kind = "of the future"
	f.Add(framed(f, wire.Items{Items: []hub.Item{future, item(2)}}))
	f.Add([]byte{0, 2, 9, byte(wire.KindPing), 0, 2, wire.Version, 99})
	f.Fuzz(func(t *testing.T, raw []byte) {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, testkit.NewFaultNet(1, testkit.Faults{}))
			p.worker.enqueue(d, "one")
			p.worker.enqueue(d, "two")
			conn, b := p.net.Pipe()
			a := &counting{Conn: conn}
			end := make(chan error, 1)
			p.wg.Go(func() { end <- p.desk.Serve(p.ctx, b, "peer_liar") })
			p.wg.Go(func() { drain(a) })
			send(t, wire.Hello{StoreID: "s", Epoch: 1, Nonce: "n", Contract: hub.ContractFederation, Credit: 1 << 20})(a)
			for _, fr := range frames(raw) {
				if a.WriteFrame(context.Background(), fr) != nil {
					break
				}
			}
			// Not a wait for something: simulated time in which the session acts on it.
			pause := time.NewTimer(3 * time.Second)
			<-pause.C
			a.Close()
			if err := <-end; err == nil || strings.Contains(err.Error(), "recording acks") {
				t.Errorf("the session ended with %v", err)
			}
			p.close()
		})
	})
}
