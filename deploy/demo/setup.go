package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
)

func (d *demo) startHubs(ctx context.Context) error {
	d.mac, d.windows = newHub(d.bin, d.dir, "mac"), newHub(d.bin, d.dir, "windows")
	return together(func() error { return d.mac.start(ctx) }, func() error { return d.windows.start(ctx) })
}

func (d *demo) pair(ctx context.Context) error {
	var offer struct {
		Invite struct {
			Code string `json:"code"`
		} `json:"invite"`
	}
	if err := d.windows.do(ctx, &offer, "peer", "invite", "--allow-repo", d.repo, "--ttl", "10m"); err != nil {
		return err
	}
	code := filepath.Join(d.dir, "code.txt")
	if err := os.WriteFile(code, []byte(offer.Invite.Code+"\n"), 0o600); err != nil {
		return err
	}
	return d.mac.do(ctx, nil, "peer", "add", "windows", d.windows.url, "--code-file", code)
}

func (d *demo) addRepo(ctx context.Context) error {
	for _, h := range []*hub{d.mac, d.windows} {
		if err := h.do(ctx, nil, "repo", "add", d.repo, "--name", "demo"); err != nil {
			return err
		}
	}
	return nil
}

// createWave hands all tasks to the mac hub, which runs them from then on.
func (d *demo) createWave(ctx context.Context) error {
	consumer := filepath.Join(d.dir, "consumer")
	var made struct {
		Run struct {
			ID string `json:"run_id"`
		} `json:"run"`
	}
	if err := d.mac.do(ctx, &made, "run", "create", "--objective", "Check this repository on both machines", "--consumer-file", consumer); err != nil {
		return err
	}
	d.run = made.Run.ID
	d.mac.env = append(d.mac.env, "WAVEHUB_CONSUMER_FILE="+consumer)
	d.tasks = plan(d)
	file, err := d.tasksFile()
	if err != nil {
		return err
	}
	var wave struct {
		Tasks []struct {
			Name string `json:"task_id"`
			ID   string `json:"hub_task_id"`
		} `json:"tasks"`
	}
	err = d.mac.do(ctx, &wave, "wave", "create", "--run", d.run, "--id", d.wave(), "--goal", "Check this repository", "--tasks", file, "--mail", "all", "--spawn")
	for _, t := range wave.Tasks {
		d.named(t.Name).id = t.ID
	}
	return err
}

func (d *demo) wave() string { return "demo-" + d.suffix }

func (d *demo) tasksFile() (string, error) {
	entries := []map[string]any{}
	for _, t := range d.tasks {
		entries = append(entries, t.entry(d))
	}
	raw, err := json.MarshalIndent(entries, "", "  ")
	if err != nil {
		return "", err
	}
	path := filepath.Join(d.dir, "tasks.json")
	return path, os.WriteFile(path, raw, 0o600)
}

// together runs functions at once and returns the first error.
func together(fns ...func() error) error {
	errs := make([]error, len(fns))
	var all sync.WaitGroup
	for i, fn := range fns {
		all.Go(func() { errs[i] = fn() })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
