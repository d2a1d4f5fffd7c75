package hub

// Topic names what a signal is about.
type Topic string

// The topics and their keys.
const (
	TopicMailbox  Topic = "mailbox"  // Box: mail was appended, or the consumer fenced
	TopicQuestion Topic = "question" // MessageID: answered or closed
	TopicRelay    Topic = "relay"    // PeerID: an item was queued for the peer
	TopicVerdict  Topic = "verdict"  // MessageID: the home's verdict is known
	TopicFence    Topic = "fence"    // "": a fence was imported
	TopicHold     Topic = "hold"     // DispatchID: a report is held, or was fenced
	TopicDispatch Topic = "dispatch" // DispatchID: its state changed
	TopicWorktree Topic = "worktree" // WorktreeID: its setup has ended
	TopicPeer     Topic = "peer"     // PeerID: paired, changed, revoked
	TopicWorker   Topic = "worker"   // WorkerID or DispatchID: it may not wait any more
	// TopicAttachment: Attachment.Key: its record, or what is held of it, changed.
	TopicAttachment Topic = "attachment"
	// TopicHeard: Attachment.Key, or WorkerID of an attached worker: it sent a message.
	TopicHeard    Topic = "heard"
	TopicTask     Topic = "task"     // TaskID: it changed
	TopicWave     Topic = "wave"     // WaveID: its own record changed
	TopicEvent    Topic = "event"    // WaveID, or "": events were appended
	TopicPresence Topic = "presence" // DispatchID: its owner's word on its worker changed
)

// Signal is a hint that something was committed; receivers read the store.
type Signal struct {
	Topic Topic
	Key   string
}
