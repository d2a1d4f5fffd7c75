package server

import (
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// kinds is a set of kinds of principals.
type kinds uint8

const (
	anyone kinds = 1 << iota // no credential is looked at
	operator
	reader
	worker      // the capability of a Dispatch
	coordinator // one that may coordinate a child Run
	peer
	strangers // a key that is not paired
	attached  // the identity of an attached worker
)

// String lists the kinds for people.
func (k kinds) String() string {
	var names []string
	for _, n := range []struct {
		kind kinds
		name string
	}{{anyone, "everybody"}, {operator, "operator"}, {reader, "reader"}, {worker, "a Dispatch's worker"}, {coordinator, "a worker that may coordinate"}, {peer, "a paired hub"}, {strangers, "a hub that pairs"}, {attached, "an attached worker"}} {
		if k&n.kind != 0 {
			names = append(names, n.name)
		}
	}
	return strings.Join(names, ", ")
}

// reads are the principals of what shows the hub to people.
const reads = operator | reader

// apiScopes says who may use which operation. A Dispatch may use what it needs
// for its own mail; the use-cases narrow that to its own Dispatch. What one that
// coordinates may use besides, they narrow to its child Run. What a peer may use
// it reaches below proxyPrefix only; they narrow that to its grants.
var apiScopes = map[string]kinds{
	"getHealth":  anyone,
	"getReady":   anyone,
	"getMetrics": reads,
	"getHub":     reads,
	"rotateKey":  operator,

	"createRun":  operator | coordinator,
	"listRuns":   reads,
	"getRun":     reads | coordinator,
	"bindRun":    operator,
	"getBinding": operator | coordinator,

	"createTask": operator | coordinator,
	"updateTask": operator | coordinator,
	"listTasks":  reads | coordinator,
	"getTask":    reads | coordinator,

	"startWorker":    operator | coordinator,
	"startRunWorker": operator | coordinator,
	"listDispatches": reads | coordinator | peer,
	"getDispatch":    reads | coordinator | peer,
	"stopWorker":     operator | coordinator,
	"abandonWorker":  operator | coordinator,
	"readOutput":     reads | coordinator,
	"createDispatch": operator,
	"putAgentEvent":  worker,

	"listAgents": reads | peer,
	"testAgent":  operator,

	"registerWorker":    operator,
	"listWorkers":       reads | peer,
	"drainWorker":       operator,
	"revokeWorker":      operator,
	"attachWorker":      attached,
	"putPresence":       attached,
	"listOwnDispatches": attached,
	"getSession":        reads | worker | attached,
	"updateSession":     operator | worker | attached,

	"sendMessage":   operator | worker | attached,
	"sendMessages":  operator | worker | attached,
	"getMessage":    reads | worker | attached,
	"replyMessage":  operator | coordinator,
	"getAnswer":     worker | attached,
	"getVerdict":    worker | attached,
	"checkMailbox":  operator | worker | attached,
	"listMailbox":   reads | worker | attached,
	"streamMailbox": reads | worker | attached,

	"streamEvents": reads,

	"listQuestions": reads | coordinator,
	"putHeartbeat":  worker,

	"getRequest": reads | worker | attached,
	"expandId":   reads,

	"addRepo":        operator,
	"listRepos":      reads | peer,
	"listWorktrees":  reads | peer,
	"createWorktree": operator | peer,
	"getWorktree":    reads | peer,
	"removeWorktree": operator,

	"createTerminal":     operator | peer,
	"listTerminals":      reads | peer,
	"getTerminal":        reads | peer,
	"readScreen":         reads | peer,
	"readTerminalOutput": reads | peer,
	"waitTerminal":       reads | peer,
	"sendTerminal":       operator | peer,
	"closeTerminal":      operator,

	"planWave":       operator,
	"createWave":     operator,
	"listWaves":      reads,
	"getWave":        reads,
	"getWaveGraph":   reads,
	"spawnWave":      operator,
	"cancelWave":     operator,
	"retryWave":      operator,
	"addWaveTask":    operator,
	"updateWaveTask": operator,

	"addPeer":        operator,
	"listPeers":      reads,
	"getPeer":        reads,
	"updatePeer":     operator,
	"grantPeer":      operator,
	"removePeer":     operator,
	"pingPeer":       operator,
	"createInvite":   operator,
	"listInvites":    reads,
	"revokeInvite":   operator,
	"setPeerReverse": operator,
}

var peerScopes = map[string]kinds{
	"peerHello":  peer,
	"peerRotate": peer,
	"peerPair":   peer | strangers,
	"peerRelay":  peer,
	"peerPark":   peer,
	"peerProbe":  peer,
	"peerStart":  peer,
	"peerShow":   peer,
	"peerStop":   peer,
	"peerOutput": peer,
}

func kindOf(p hub.Principal) kinds {
	switch p.Kind {
	case hub.Operator:
		return operator
	case hub.Reader:
		return reader
	case hub.DispatchCap:
		if p.Coordinator {
			return worker | coordinator
		}
		return worker
	case hub.AttachedWorker:
		return attached
	case hub.PeerKey:
		return peer
	case hub.Engine, hub.SystemPrincipal:
	}
	return 0
}

func (o *operation) permits(p hub.Principal) error {
	if o.allowed&kindOf(p) != 0 {
		return nil
	}
	return hub.Errorf(hub.CodeOutOfScope, "the credential of a %s does not allow %s", p.Kind, o.id)
}
