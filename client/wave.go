package client

import (
	"context"
	"net/http"
	"time"

	"github.com/wavehub/wavehub/openapi/api"
)

// The waits of a hub whose caller is silent: one that plans may have to ask peers,
// and stores what may be twenty thousand tasks.
const (
	planWait   = time.Minute
	cancelWait = 15 * time.Second
)

// PlanWave validates and plans the tasks of a wave; nothing is stored. A plan that
// is not valid is a result, not an error.
func (c *Client) PlanWave(ctx context.Context, in api.WavePlanRequest, opts ...Option) (*api.WavePlan, error) {
	return read[api.WavePlan](ctx, c, planWait, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.PlanWave(ctx, in)
	})
}

// CreateWave validates a wave and stores it, all or nothing. One that is not valid
// is plan_invalid, with every finding.
func (c *Client) CreateWave(ctx context.Context, in api.WaveCreate, opts ...Option) (*api.WaveResult, error) {
	return mutate[api.WaveResult](ctx, c, planWait, opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.CreateWave(ctx, &api.CreateWaveParams{IdempotencyKey: key}, in)
	})
}

// WaveFilter selects waves; empty fields select all.
type WaveFilter struct {
	Status api.WaveStatus
	Run    string
}

// Waves lists waves, newest first.
func (c *Client) Waves(ctx context.Context, filter WaveFilter, page Page, opts ...Option) (*api.WavePage, error) {
	return read[api.WavePage](ctx, c, 0, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.ListWaves(ctx, &api.ListWavesParams{Status: filter.Status, Run: filter.Run, Cursor: page.Cursor, Limit: page.Limit})
	})
}

// Wave returns a wave with its tasks, as it is now.
func (c *Client) Wave(ctx context.Context, wave string, opts ...Option) (*api.WaveSnapshot, error) {
	return read[api.WaveSnapshot](ctx, c, 0, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.GetWave(ctx, wave)
	})
}

// WaveGraph returns the plan of a wave.
func (c *Client) WaveGraph(ctx context.Context, wave string, opts ...Option) (*api.WaveGraph, error) {
	return read[api.WaveGraph](ctx, c, 0, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.GetWaveGraph(ctx, wave)
	})
}

// SpawnWave starts a wave and returns it at once; a running one is left as it is.
func (c *Client) SpawnWave(ctx context.Context, wave string, in api.WaveSpawn, opts ...Option) (*api.WaveSnapshot, error) {
	return mutate[api.WaveSnapshot](ctx, c, 0, opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.SpawnWave(ctx, wave, &api.SpawnWaveParams{IdempotencyKey: key}, in)
	})
}

// CancelWave ends a wave and waits up to in.WaitMs for that (nil: 15 s). A wave that
// is still running then is a result, not an error: it ends by itself.
func (c *Client) CancelWave(ctx context.Context, wave string, in api.WaveCancel, opts ...Option) (*api.WaveSnapshot, error) {
	wait := cancelWait
	if in.WaitMs != nil {
		wait = time.Duration(*in.WaitMs) * time.Millisecond
	}
	return mutate[api.WaveSnapshot](ctx, c, wait, opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.CancelWave(ctx, wave, &api.CancelWaveParams{IdempotencyKey: key}, in)
	})
}

// RetryWave runs again everything of a failed or cancelled wave that is not
// completed.
func (c *Client) RetryWave(ctx context.Context, wave string, in api.WaveRetry, opts ...Option) (*api.WaveSnapshot, error) {
	return mutate[api.WaveSnapshot](ctx, c, 0, opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.RetryWave(ctx, wave, &api.RetryWaveParams{IdempotencyKey: key}, in)
	})
}

// AddWaveTask adds a task to a pending wave, which is planned anew as a whole.
func (c *Client) AddWaveTask(ctx context.Context, wave string, in api.WaveEntry, opts ...Option) (*api.WaveResult, error) {
	return mutate[api.WaveResult](ctx, c, planWait, opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.AddWaveTask(ctx, wave, &api.AddWaveTaskParams{IdempotencyKey: key}, api.WaveTaskAdd{Task: in})
	})
}

// UpdateWaveTask changes the task of that token.
func (c *Client) UpdateWaveTask(ctx context.Context, wave, token string, in api.WaveTaskUpdate, opts ...Option) (*api.WaveResult, error) {
	return mutate[api.WaveResult](ctx, c, planWait, opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.UpdateWaveTask(ctx, wave, token, &api.UpdateWaveTaskParams{IdempotencyKey: key}, in)
	})
}
