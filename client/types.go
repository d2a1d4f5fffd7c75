package client

import "github.com/wavehub/wavehub/openapi/api"

// The documents of the API, under the names of openapi.yaml, which describes
// their fields.
type (
	Agent                   = api.Agent
	AgentEvent              = api.AgentEvent
	AgentEventResult        = api.AgentEventResult
	AgentPage               = api.AgentPage
	AgentTested             = api.AgentTested
	Answer                  = api.Answer
	AskedQuestion           = api.Question
	AuditRow                = api.AuditRow
	BatchResult             = api.BatchResult
	Binding                 = api.Binding
	CheckResult             = api.CheckResult
	Commands                = api.Commands
	Default                 = api.Default
	Dispatch                = api.Dispatch
	DispatchCreate          = api.DispatchCreate
	DispatchCreateReports   = api.DispatchCreateReports
	DispatchDetail          = api.DispatchDetail
	DispatchPage            = api.DispatchPage
	DispatchState           = api.DispatchState
	ErrorCode               = api.ErrorCode
	Findings                = api.Findings
	Grants                  = api.Grants
	Handoff                 = api.Handoff
	Heartbeat               = api.Heartbeat
	HeartbeatResult         = api.HeartbeatResult
	HistoryPage             = api.HistoryPage
	HubStatus               = api.HubStatus
	IdMatches               = api.IdMatches
	Invite                  = api.Invite
	InviteCreate            = api.InviteCreate
	InviteCreateAs          = api.InviteCreateAs
	InvitePage              = api.InvitePage
	InviteResult            = api.InviteResult
	InviteRevoked           = api.InviteRevoked
	Liveness                = api.Liveness
	Message                 = api.Message
	MessageOnly             = api.MessageOnly
	MessageSend             = api.MessageSend
	MessageSendType         = api.MessageSendType
	MessageSendVerifyResult = api.MessageSendVerifyResult
	MessageType             = api.MessageType
	Mutation                = api.Mutation
	Observation             = api.Observation
	OutputPage              = api.OutputPage
	OutputTerminal          = api.OutputTerminal
	OutputTranscript        = api.OutputTranscript
	OwnDispatch             = api.OwnDispatch
	OwnDispatchPage         = api.OwnDispatchPage
	Peer                    = api.Peer
	KeyRotate               = api.KeyRotate
	KeyRotation             = api.KeyRotation
	PeerAdd                 = api.PeerAdd
	PeerDetail              = api.PeerDetail
	PeerGrant               = api.PeerGrant
	PeerGrantVerbs          = api.PeerGrantVerbs
	PeerHolds               = api.PeerHolds
	PeerRelay               = api.PeerRelay
	PeerPage                = api.PeerPage
	PeerPing                = api.PeerPing
	PeerPingStage           = api.PeerPingStage
	PeerResult              = api.PeerResult
	PeerUpdate              = api.PeerUpdate
	Presence                = api.Presence
	PresenceResult          = api.PresenceResult
	Problem                 = api.Problem
	ProblemRetry            = api.ProblemRetry
	QuestionPage            = api.QuestionPage
	Reply                   = api.Reply
	Repo                    = api.Repo
	RepoAdd                 = api.RepoAdd
	RepoAddSetup            = api.RepoAddSetup
	RepoPage                = api.RepoPage
	RepoResult              = api.RepoResult
	RequestDetail           = api.RequestDetail
	Resource                = api.Resource
	Run                     = api.Run
	RunBound                = api.RunBound
	RunCreate               = api.RunCreate
	RunCreateBind           = api.RunCreateBind
	RunDetail               = api.RunDetail
	RunPage                 = api.RunPage
	SendResult              = api.SendResult
	Server                  = api.Server
	Session                 = api.Session
	SessionOnly             = api.SessionOnly
	SessionResult           = api.SessionResult
	Setup                   = api.Setup
	StartReceipt            = api.StartReceipt
	StopResult              = api.StopResult
	Task                    = api.Task
	TaskCreate              = api.TaskCreate
	TaskCreateScope         = api.TaskCreateScope
	TaskCreateVerify        = api.TaskCreateVerify
	TaskOnly                = api.TaskOnly
	TaskPage                = api.TaskPage
	TaskResult              = api.TaskResult
	TaskStart               = api.TaskStart
	TaskState               = api.TaskState
	TaskUpdate              = api.TaskUpdate
	TaskUpdateState         = api.TaskUpdateState
	Terminal                = api.Terminal
	TerminalClose           = api.TerminalClose
	TerminalClosed          = api.TerminalClosed
	TerminalCreate          = api.TerminalCreate
	TerminalDetail          = api.TerminalDetail
	TerminalOutput          = api.TerminalOutput
	TerminalPage            = api.TerminalPage
	TerminalReceipt         = api.TerminalReceipt
	TerminalScreen          = api.TerminalScreen
	TerminalSend            = api.TerminalSend
	TerminalSent            = api.TerminalSent
	TerminalSize            = api.TerminalSize
	TerminalWait            = api.TerminalWait
	TranscriptBlock         = api.TranscriptBlock
	TranscriptMessage       = api.TranscriptMessage
	Usage                   = api.Usage
	VerdictResult           = api.VerdictResult
	Verification            = api.Verification
	WaveGraph               = api.WaveGraph
	WavePlan                = api.WavePlan
	Wave                    = api.Wave
	WaveEnding              = api.WaveEnding
	WaveEvent               = api.WaveEvent
	WaveLevel               = api.WaveLevel
	WaveSnapshot            = api.WaveSnapshot
	WaveTask                = api.WaveTask
	WaveStart               = api.WaveStart
	WorkerDispatch          = api.WorkerDispatch
	WorkerIdentity          = api.WorkerIdentity
	WorkerPage              = api.WorkerPage
	WorkerRegistered        = api.WorkerRegistered
	WorkerResult            = api.WorkerResult
	WorkerShown             = api.WorkerShown
	WorkerStart             = api.WorkerStart
	WorkerStartMode         = api.WorkerStartMode
	WorkerStartReports      = api.WorkerStartReports
	WorkerStartSetup        = api.WorkerStartSetup
	WorkerStop              = api.WorkerStop
	Worktree                = api.Worktree
	WorktreeCreate          = api.WorktreeCreate
	WorktreeCreateRepoHooks = api.WorktreeCreateRepoHooks
	WorktreeCreateSetup     = api.WorktreeCreateSetup
	WorktreeDetail          = api.WorktreeDetail
	WorktreeLoss            = api.WorktreeLoss
	WorktreePage            = api.WorktreePage
	WorktreeReceipt         = api.WorktreeReceipt
	WorktreeRemoval         = api.WorktreeRemoval
	WorktreeRemove          = api.WorktreeRemove
	WorktreeSaved           = api.WorktreeSaved
)

// The documents of waves.
type (
	PlanFinding              = api.PlanFinding
	PlanLevel                = api.PlanLevel
	PlanSerialized           = api.PlanSerialized
	WaveBudget               = api.WaveBudget
	WaveCancel               = api.WaveCancel
	WaveCheckpoint           = api.WaveCheckpoint
	WaveCreate               = api.WaveCreate
	WaveDefaults             = api.WaveDefaults
	WaveEdge                 = api.WaveEdge
	WaveEntry                = api.WaveEntry
	WavePage                 = api.WavePage
	WavePlanRequest          = api.WavePlanRequest
	WavePolicy               = api.WavePolicy
	WavePolicyInput          = api.WavePolicyInput
	WavePolicyInputConflicts = api.WavePolicyInputConflicts
	WavePolicyInputMail      = api.WavePolicyInputMail
	WavePolicyInputOnFailure = api.WavePolicyInputOnFailure
	WavePolicyInputOrder     = api.WavePolicyInputOrder
	WavePolicyInputScope     = api.WavePolicyInputScope
	WavePolicyInputVerify    = api.WavePolicyInputVerify
	WaveResidual             = api.WaveResidual
	WaveResult               = api.WaveResult
	WaveRetry                = api.WaveRetry
	WaveSource               = api.WaveSource
	WaveSourceFormat         = api.WaveSourceFormat
	WaveSpawn                = api.WaveSpawn
	WaveStatus               = api.WaveStatus
	WaveSummary              = api.WaveSummary
	WaveTaskUpdate           = api.WaveTaskUpdate
	WaveTaskUpdateStatus     = api.WaveTaskUpdateStatus
)

// Types of messages that a client sends.
const (
	MessageSendTypeWorkerDone = api.MessageSendTypeWorkerDone
	MessageSendTypeQuestion   = api.MessageSendTypeQuestion
	MessageSendTypeGuidance   = api.MessageSendTypeGuidance
	MessageSendTypeStatus     = api.MessageSendTypeStatus
	MessageSendTypeEscalation = api.MessageSendTypeEscalation
	MessageSendTypeHandoff    = api.MessageSendTypeHandoff
)

// Statuses of waves and of their tasks.
const (
	WavePending   = api.WaveStatusWavePending
	WaveRunning   = api.WaveStatusWaveRunning
	WaveCompleted = api.WaveStatusWaveCompleted
	WaveFailed    = api.WaveStatusWaveFailed
	WaveCancelled = api.WaveStatusWaveCancelled
)

// LivenessLive is a process that is proven to run.
const LivenessLive = api.LivenessLive

// States of a Dispatch.
const (
	DispatchStateStarting     = api.DispatchStateStarting
	DispatchStateReady        = api.DispatchStateReady
	DispatchStateStartUnknown = api.DispatchStateStartUnknown
	DispatchStateStopping     = api.DispatchStateStopping
	DispatchStateStopUnknown  = api.DispatchStateStopUnknown
	DispatchStateSucceeded    = api.DispatchStateSucceeded
	DispatchStateFailed       = api.DispatchStateFailed
	DispatchStateStopped      = api.DispatchStateStopped
	DispatchStateAbandoned    = api.DispatchStateAbandoned
)
