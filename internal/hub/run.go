package hub

// Run is a namespace for Tasks with one coordinator mailbox. Generation 0
// means that it has never had a consumer, Released that it has none any more: the
// terminal of its generation took another Run.
type Run struct {
	ID         RunID  `json:"run_id"`
	Objective  string `json:"objective"`
	Generation int64  `json:"generation"`
	Parent     RunID  `json:"parent_run_id"`
	Depth      int    `json:"depth"`
	CreatedAt  Micros `json:"created_at"`
	Released   bool   `json:"-"`
}

// Binding is the present consumer of a Run, or the Run a context is bound to.
type Binding struct {
	Run        RunID
	Generation int64
	Context    string // empty for a consumer that holds only its token
	At         Micros
}

// Audit is one row of a Run's history of consumers.
type Audit struct {
	Run        RunID
	At         Micros
	Action     string // created, bound, released
	Principal  string
	Context    string
	Generation int64
}

// MaxRunDepth is how deep child Runs may nest.
const MaxRunDepth = 3
