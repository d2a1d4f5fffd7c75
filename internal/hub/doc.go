// Package hub is wavehub's domain: pure values, state machines and the error
// catalogue. It does no I/O, reads no clock and starts no goroutine.
//
// # Glossary
//
// The same word is used in code, SQL, OpenAPI, CLI and documents.
//
//	Hub         one process per host; owns its resources and the Runs created on it
//	Home        the hub on which a Run lives
//	Owner       the hub on which a Dispatch's worker lives (the home, or a peer)
//	Peer        another hub, saved under a local name, pinned by its key
//	Lineage     the hub_… text of a hub's first key; names the hub for ever
//	Run         a namespace for Tasks with one coordinator mailbox, run:<id>
//	Child Run   the one Run that a worker with --may-coordinate creates and operates
//	Consumer    who may check, ack and reply for a Run: one generation at a time
//	Generation  counts the consumers of a mailbox; raising it fences the former
//	Context     the terminal a command runs in, to which a Run can be bound
//	Task        what is to be done; creating it starts nothing
//	Dispatch    one supervised attempt at a Task; its id is the fence
//	Attachment  the owner's record of a Dispatch: capability, terminal, worktree
//	Capability  the credential of one Dispatch's worker
//	Terminal    one supervised process of a hub, with what it was made for
//	Incarnation one process of a terminal, proven by nonce, pid, start time, boot
//	Message     durable mail, stored verbatim
//	Mailbox     run:<id>, dispatch:<id> or worker:<id>; FIFO by sequence
//	Identity    an attached worker as it is registered: its name and its token
//	Presence    an owner's latest word on a live worker: state, never mail
//	Lost        of a worker: silent for longer than its liveness; no state
//	Session     what a worker keeps between the Dispatches of one piece of work
//	Delivery    the one outstanding batch of a mailbox, until acknowledged
//	Report      a worker_done message: what a worker says of its Dispatch
//	Settlement  the one transition of a Dispatch to a final state by evidence
//	Fence       stop, abandon or replacement: later reports change nothing
//	Hold        a success that its owner has taken and looks into before it goes
//	Findings    what the owner found out: verification, changes, notes
//	Baseline    what a worktree was when the first attempt of a Task got it
//	Verdict     what the home made of a report
//	Spool       what a worker wrote down while no hub answered: a file per Dispatch
//	Item        one entry of a relay queue: a sequence never changes its content
//	Receipt     the record of one request: at most one effect per request id
//	Effect      something outside the store that a request made or reused
//	Background  what a worker is told of the Tasks that its own depends on
//	Usage       what a Dispatch took in money and tokens, in all and as far as known
//	Residual    a resource that outlived the request or the Dispatch
package hub
