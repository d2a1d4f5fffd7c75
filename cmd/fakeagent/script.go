package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxScript bounds the size of a script in bytes.
const maxScript = 1 << 20

type step struct {
	Print           *string  `json:"print"`
	Complain        *string  `json:"complain"`
	SleepMS         *int     `json:"sleep_ms"`
	Run             []string `json:"run"`
	Input           string   `json:"input"`
	WantExit        int      `json:"want_exit"`
	Write           *string  `json:"write"`
	Text            string   `json:"text"`
	Exit            *int     `json:"exit"`
	IgnoreTerm      *bool    `json:"ignore_term"`
	SpawnGrandchild *bool    `json:"spawn_grandchild"`
	Repeat          *int     `json:"repeat"`
	Steps           []step   `json:"steps"`
}

func parse(r io.Reader) ([]step, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxScript+1))
	if err != nil {
		return nil, fmt.Errorf("reading the script: %w", err)
	}
	if len(raw) > maxScript {
		return nil, fmt.Errorf("the script has more than %d bytes", maxScript)
	}
	raw = bytes.TrimSpace(raw)
	var whole struct {
		Steps []step `json:"steps"`
	}
	var into any = &whole.Steps
	if bytes.HasPrefix(raw, []byte("{")) {
		into = &whole
	}
	if err := decode(raw, into); err != nil {
		return nil, fmt.Errorf("parsing the script: %w", err)
	}
	return whole.Steps, check(whole.Steps, "steps")
}

func decode(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more after the script")
	}
	return nil
}

func check(steps []step, where string) error {
	for i, s := range steps {
		at := fmt.Sprintf("%s[%d]", where, i)
		if n := s.actions(); n != 1 {
			return fmt.Errorf("%s has %d actions, want 1", at, n)
		}
		if s.Steps != nil && s.Repeat == nil || s.Input != "" && s.Run == nil || s.WantExit != 0 && s.Run == nil || s.Text != "" && s.Write == nil {
			return fmt.Errorf("%s has a key that does not belong to its action", at)
		}
		if s.Repeat != nil && *s.Repeat < 0 || s.SleepMS != nil && *s.SleepMS < 0 || s.Run != nil && len(s.Run) == 0 {
			return fmt.Errorf("%s is negative or empty", at)
		}
		if err := check(s.Steps, at+".steps"); err != nil {
			return err
		}
	}
	return nil
}

func (s step) actions() int {
	n := 0
	for _, is := range []bool{s.Print != nil, s.Complain != nil, s.SleepMS != nil, s.Run != nil, s.Write != nil, s.Exit != nil,
		s.IgnoreTerm != nil, s.SpawnGrandchild != nil, s.Repeat != nil} {
		if is {
			n++
		}
	}
	return n
}
