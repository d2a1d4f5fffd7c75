package cli

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/capfile"
	"github.com/wavehub/wavehub/internal/hub"
)

// checkSpooled refuses what the hub would refuse of the message itself, and a
// report on another Task or Dispatch than the capability's.
func checkSpooled(in client.MessageSend, own capfile.File) error {
	if err := hub.CheckUsage(in.Usage); err != nil {
		return err
	}
	switch {
	case !slices.Contains(hub.Sendable, hub.MessageType(in.Type)):
		return hub.Invalid("type", "%q cannot be sent", in.Type)
	case len(in.Options) > 0:
		return hub.Invalid("options", "only a question has options")
	case in.ThreadId != "" && !hub.ValidID(hub.PrefixMessage, in.ThreadId):
		return hub.Invalid("thread_id", "%q is no id of a message", in.ThreadId)
	case in.To != "" && !own.MayCoordinate:
		return hub.Invalid("to", "a Dispatch's only recipient is its own Run; leave it away")
	case in.Milestone != "" && len(in.Payload) > 0:
		return hub.Invalid("milestone", "give it or a payload, not both")
	}
	m := hub.Message{Subject: in.Subject, Body: in.Body}
	var err error
	if in.Type == client.MessageSendTypeWorkerDone {
		m.Payload, err = reportSpooled(in, own)
	} else {
		m.Payload, err = payloadSpooled(in, own)
	}
	if err != nil {
		return err
	}
	return hub.CheckMessage(m)
}

func payloadSpooled(in client.MessageSend, own capfile.File) (json.RawMessage, error) {
	if in.DispatchId != "" && in.DispatchId != own.DispatchID {
		return nil, hub.Invalid("dispatch_id", "%s is not the Dispatch of this credential", in.DispatchId)
	}
	payload, err := hub.PlainJSON(in.Payload)
	switch {
	case err != nil || len(payload) > 0 && payload[0] != '{':
		return nil, hub.Invalid("payload", "must be a JSON object")
	case len(payload) > hub.MaxPayloadBytes:
		return nil, &hub.Error{Code: hub.CodeTooLarge, Field: "payload", Message: "payload: at most 64 KiB are taken"}
	}
	return payload, nil
}

// reportSpooled is the report as the payload that counts against the limits.
func reportSpooled(in client.MessageSend, own capfile.File) (json.RawMessage, error) {
	result, err := hub.PlainJSON(in.Result)
	if err != nil {
		return nil, hub.Invalid("result", "is no JSON document")
	}
	task := in.TaskId
	if own.WaveTaskID != "" && task == own.WaveTaskID { // the hub takes it too
		task = own.TaskID
	}
	r := hub.Report{
		Task: hub.TaskID(task), Dispatch: hub.DispatchID(in.DispatchId), Outcome: hub.Outcome(in.Outcome), Topic: in.Topic,
		Result: result, Files: in.FilesModified, ReportPath: in.ReportPath, Claim: string(in.VerifyResult), Usage: in.Usage,
	}
	if err := r.Check(hub.TaskID(own.TaskID), hub.DispatchID(own.DispatchID)); err != nil {
		return nil, err
	}
	switch {
	case strings.TrimSpace(in.Body) == "":
		e := hub.Errorf(hub.CodeLifecycleInvalid, "body is missing: say what was done, or why not")
		e.Field = "body"
		return nil, e
	case !slices.Contains([]client.MessageSendVerifyResult{"", "passed", "failed", "missing"}, in.VerifyResult):
		return nil, hub.Invalid("verify_result", "must be passed, failed or missing")
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return nil, hub.Invalid("usage", "is no JSON document")
	}
	return hub.PlainJSON(raw)
}
