package hub

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Report is a worker_done: what a worker, or its hub on its behalf, says of a
// Dispatch. It is the payload of the message and of the relay item.
type Report struct {
	Task       TaskID          `json:"task_id"`
	Dispatch   DispatchID      `json:"dispatch_id"`
	Outcome    Outcome         `json:"outcome"`
	Evidence   Evidence        `json:"evidence"`
	Topic      string          `json:"topic,omitempty"`
	Result     json.RawMessage `json:"result,omitempty"`
	Files      []string        `json:"files_modified,omitempty"`
	ReportPath string          `json:"report_path,omitempty"`
	// Claim is what the worker itself says of the verification.
	Claim    string          `json:"verify_claim,omitempty"`
	Usage    json.RawMessage `json:"usage,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	ExitCode *int            `json:"exit_code,omitempty"`
	// Findings are the owner's, never the worker's own.
	Findings
}

// Check refuses a report that lacks a field or does not name the Dispatch that
// the credential proves, with the field named.
func (r Report) Check(task TaskID, dispatch DispatchID) error {
	switch {
	case r.Task == "":
		return lifecycle("task_id", "is missing")
	case r.Dispatch == "":
		return lifecycle("dispatch_id", "is missing")
	case !r.Outcome.Valid():
		return lifecycle("outcome", "must be succeeded, failed or cancelled")
	case r.Dispatch != dispatch:
		return lifecycle("dispatch_id", "is not the Dispatch of this credential")
	case r.Task != task:
		return lifecycle("task_id", "is not the Task of this Dispatch")
	case len(r.Result) > MaxResultBytes:
		return &Error{Code: CodeTooLarge, Field: "result", Message: "result: at most 64 KiB are taken"}
	}
	return r.Findings.Check()
}

// Claimed is r with the worker's own word on the verification as its result,
// for want of a better one.
func (r Report) Claimed() Report {
	r.Findings = Findings{VerifyResult: r.Claim}
	if r.Claim != "" {
		r.VerifiedBy = VerifiedByWorker
	}
	return r
}

func lifecycle(field, what string) error {
	e := Errorf(CodeLifecycleInvalid, "%s %s", field, what)
	e.Field = field
	return e
}

// Sum identifies what a report says: equal sums are duplicates. It covers
// outcome, body, result (by its meaning), files and the worker's verify_result.
func (r Report) Sum(body string) string {
	files := r.Files
	if len(files) == 0 {
		files = nil // as it is after having been written
	}
	raw, err := json.Marshal([]any{r.Outcome, body, sameJSON(r.Result), files, r.Claim})
	if err != nil { // strings and raw JSON as string always marshal
		panic(err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
