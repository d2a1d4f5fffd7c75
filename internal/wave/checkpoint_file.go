package wave

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/wavehub/wavehub/internal/hub"
)

// checkpointFormat is in every file of a checkpoint folder; another one is not read.
// It changes with the shape and the meaning of what is written.
const checkpointFormat = "wavehub-checkpoint/1"

// Bounds of what the files repeat of a task: a done.json of the most tasks that a
// wave may have has to fit into a request.
const (
	maxEvidenceText = 1 << 10
	maxFailureText  = 4 << 10
	maxFailureTexts = 200 // failures of one level that are told with their texts
)

// fileHead is what every file has. Mark tells waves of one name apart; Graph is the
// sum of the graph that the file belongs to.
type fileHead struct {
	Format string     `json:"format"`
	Wave   hub.WaveID `json:"wave_id"`
	Mark   string     `json:"wave_sha256"`
	Graph  string     `json:"graph_sha256"`
}

// graphBody is what graph_sha256 is the sum of: its JSON without white space.
type graphBody struct {
	Tasks  []hub.WaveEntry `json:"tasks"`
	Policy hub.WavePolicy  `json:"policy"`
	Levels []hub.PlanLevel `json:"levels"`
	Orders []fileOrder     `json:"orders"`
}

// fileOrder is a hub.WaveOrder by tokens.
type fileOrder struct {
	First  string `json:"first"`
	Second string `json:"second"`
	Path   string `json:"path"`
}

// graphFile is graph.json. TasksSum is the sum of the tasks alone.
type graphFile struct {
	fileHead
	TasksSum string    `json:"tasks_sha256"`
	Run      hub.RunID `json:"run_id"`
	Goal     string    `json:"goal"`
	graphBody
}

// stateFile is state.json. Current is the lowest level without done.json, one more
// than Total when all have theirs.
type stateFile struct {
	fileHead
	Run           hub.RunID      `json:"run_id"`
	Goal          string         `json:"goal"`
	Status        hub.WaveStatus `json:"status"`
	Reason        string         `json:"reason"` // of the ending, "" for none
	Current       int            `json:"current_wave"`
	Total         int            `json:"total_waves"`
	Iteration     int            `json:"iteration_count"`
	MaxIterations int            `json:"max_iterations"`
	UpdatedAt     hub.Micros     `json:"updated_at"`
}

// doneFile is waves/N/done.json.
type doneFile struct {
	fileHead
	Level       int        `json:"wave"`
	CompletedAt hub.Micros `json:"completed_at"`
	Tasks       []evidence `json:"tasks"` // as declared
}

// evidence is what a done.json says of one task, and what is known of a task that
// was completed elsewhere. Source is checkpoint for such a one: its Dispatch is one
// of the hub that ran it.
type evidence struct {
	Token        string            `json:"task_id"`
	Task         hub.TaskID        `json:"hub_task_id"`
	Dispatch     hub.DispatchID    `json:"dispatch_id"`
	Status       hub.WaveStatus    `json:"status"` // completed
	Source       string            `json:"source,omitempty"`
	CompletedAt  hub.Micros        `json:"completed_at"`
	Attempts     int               `json:"attempts"`
	Result       string            `json:"result"` // its beginning
	VerifyResult string            `json:"verify_result"`
	VerifiedBy   string            `json:"verified_by"`
	Verification *hub.Verification `json:"verification,omitempty"` // its output's end
	Handoff      *hub.Handoff      `json:"handoff,omitempty"`
}

// failuresFile is waves/N/failures.json. Blocked are the tasks behind the failed
// ones.
type failuresFile struct {
	fileHead
	Level     int           `json:"wave"`
	Iteration int           `json:"iteration"`
	Tasks     []taskFailure `json:"tasks"`
	Blocked   []string      `json:"blocked"`
}

// taskFailure is a task that failed or was cancelled. Error is the beginning of what
// its attempt reported.
type taskFailure struct {
	Token        string            `json:"task_id"`
	Task         hub.TaskID        `json:"hub_task_id"`
	Dispatch     hub.DispatchID    `json:"dispatch_id"`
	Status       hub.WaveStatus    `json:"status"`
	Reason       string            `json:"reason"`
	EndedAt      hub.Micros        `json:"ended_at"`
	Attempts     int               `json:"attempts"`
	ExitCode     *int              `json:"exit_code"`
	Error        string            `json:"error"`
	VerifyResult string            `json:"verify_result"`
	Verification *hub.Verification `json:"verification,omitempty"`
	Violations   []string          `json:"scope_violations,omitempty"`
}

// markerFile is MAX_ITERATIONS_REACHED.
type markerFile struct {
	fileHead
	Status        hub.WaveStatus `json:"status"`
	Current       int            `json:"current_wave"`
	Total         int            `json:"total_waves"`
	Iteration     int            `json:"iteration_count"`
	MaxIterations int            `json:"max_iterations"`
	Failed        []taskFailure  `json:"failed"`
	Remaining     []string       `json:"remaining"` // tasks that are not completed
}

// headOf is the head of the files of a wave; its uid itself is not published.
func headOf(w hub.Wave, graph string) fileHead {
	return fileHead{Format: checkpointFormat, Wave: w.ID, Mark: checksum([]byte("checkpoint/1 " + w.UID)), Graph: graph}
}

// graphSum is the graph_sha256 of a graph.
func graphSum(b graphBody) string { return checksum(encodeFile(b, "")) }

// tasksSum is the sum of cleaned tasks in their declared order; equal ones make
// equal plans under one policy.
func tasksSum(entries []hub.WaveEntry) string { return checksum(encodeFile(entries, "")) }

func checksum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// encodeFile writes JSON: the same bytes for the same value.
func encodeFile(v any, indent string) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil { // the types of this file always marshal
		panic(err)
	}
	if indent == "" {
		out.Truncate(out.Len() - 1) // the line's end
	}
	return out.Bytes()
}
