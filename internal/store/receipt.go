package store

import "github.com/wavehub/wavehub/internal/hub"

// ReceiptState is whether a request has its final answer.
type ReceiptState string

// The states of a receipt.
const (
	ReceiptRunning ReceiptState = "running" // accepted, not answered
	ReceiptUnknown ReceiptState = "unknown" // answered outcome_unknown: may be observed again
	ReceiptRefused ReceiptState = "refused" // ended without an effect: may be tried again
	ReceiptDone    ReceiptState = "done"
)

// Receipt is the record of one request. Key is unique in Space.
type Receipt struct {
	Space     string
	Key       hub.RequestID
	Principal string
	// Generation is the consumer's, for operations of a consumer; else 0.
	Generation int64
	Op         string
	Sum        string // SHA-256 of the canonical payload, hex
	State      ReceiptState
	Stage      hub.Stage
	Status     int // HTTP status of the recorded answer
	Body       []byte
	Object     string // id of what the request made, for answers by reference
	Run        hub.RunID
	CreatedAt  hub.Micros
}

// ReceiptReader looks receipts up.
type ReceiptReader interface {
	Receipt(space string, key hub.RequestID) (Receipt, bool, error)
}

// Receipts keeps receipts.
type Receipts interface {
	ReceiptReader
	PutReceipt(Receipt) error
	SaveReceipt(Receipt) error
	// SweepReceipts drops the bodies of finished receipts that were made before
	// the instant, but not those of the engine. It looks at up to limit receipts,
	// oldest first, behind those of the last sweep, and returns at how many it looked.
	SweepReceipts(before hub.Micros, limit int) (int, error)
	// UnfinishedReceipts counts a principal's that are running or unknown.
	UnfinishedReceipts(principal string) (int, error)
}

// CredentialKind is the kind of a token.
type CredentialKind string

// The kinds of credentials and their token prefixes.
const (
	CredOperator CredentialKind = "operator" // whu_
	CredReader   CredentialKind = "reader"   // whr_
	CredConsumer CredentialKind = "consumer" // whc_
	CredDispatch CredentialKind = "dispatch" // whd_
	CredWorker   CredentialKind = "worker"   // whw_
)

// Credential maps the SHA-256 of a token to what it proves. Subject is a Run
// for consumers (with Generation), a Dispatch for capabilities (with Home, the
// peer whose Dispatch it is), an identity for attached workers, empty for operator
// and reader.
type Credential struct {
	Sum        string
	Kind       CredentialKind
	Subject    string
	Home       hub.PeerID
	Generation int64
}

// CredentialReader looks credentials up.
type CredentialReader interface {
	Credential(sum string) (Credential, bool, error)
}

// Credentials keeps credentials; putting an equal one again is no error.
type Credentials interface {
	CredentialReader
	PutCredential(Credential) error
	// DropCredential forgets a credential: its token is not known any more.
	DropCredential(sum string) error
}
