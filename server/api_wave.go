package server

import (
	"context"
	"net/http"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/wave"
	"github.com/wavehub/wavehub/openapi/api"
)

// cancelWait is how long the caller of a cancellation waits for the end who does
// not say how long.
const cancelWait = 15 * time.Second

// PlanWave plans the tasks of a wave and stores nothing. It may have to ask peers.
func (s apiHandlers) PlanWave(w http.ResponseWriter, r *http.Request) {
	body, err := decode[api.WavePlanRequest](callOf(r))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	in, err := planInput(body, s.cfg.Waves.LivenessSecs)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.patiently(w, r, func(ctx context.Context) (int, any, error) {
		plan, entries, err := s.cfg.Waves.Plan(ctx, in)
		return http.StatusOK, wavePlan(plan, entries), err
	})
}

// CreateWave stores a wave with its Tasks.
func (s apiHandlers) CreateWave(w http.ResponseWriter, r *http.Request, params api.CreateWaveParams) {
	mutate(s.Server, w, r, verb[api.WaveCreate, waveChanged]{
		key: params.IdempotencyKey,
		do: func(ctx context.Context, q receipt.Request, b api.WaveCreate) (waveChanged, error) {
			in, err := waveInput(b, s.cfg.Waves.LivenessSecs)
			if err != nil {
				return waveChanged{}, err
			}
			return s.changedWave(ctx)(s.cfg.Waves.Create(ctx, q, in))
		},
		show:  answered(http.StatusCreated, waveResult),
		waits: func(api.WaveCreate) bool { return true },
	})
}

// changedWave adds the wave as it is now to the outcome of a mutation.
func (s *Server) changedWave(ctx context.Context) func(wave.Created, error) (waveChanged, error) {
	return func(c wave.Created, err error) (waveChanged, error) {
		if err != nil {
			return waveChanged{}, err
		}
		now, err := s.cfg.Waves.Show(ctx, c.Wave)
		return waveChanged{c, now}, err
	}
}

// ListWaves shows waves, newest first.
func (s apiHandlers) ListWaves(w http.ResponseWriter, r *http.Request, params api.ListWavesParams) {
	l := list{"waves", params.Run, string(params.Status)}
	f := store.WaveFilter{Run: hub.RunID(params.Run), Status: hub.WaveStatus(params.Status)}
	page(s.Server, w, r, l, params.Cursor, params.Limit, func(rx store.Rx, p store.Page) (paged, int64, error) {
		if err := exist(rx, f.Run, ""); err != nil {
			return nil, 0, err
		}
		waves, next, err := rx.WaveList(f, p)
		return func(c *string) any { return api.WavePage{Waves: each(waves, waveOf), NextCursor: c} }, next, err
	})
}

// GetWave shows a wave with its tasks.
func (s apiHandlers) GetWave(w http.ResponseWriter, r *http.Request, id api.WaveParam) {
	now, err := s.cfg.Waves.Show(r.Context(), hub.WaveID(id))
	s.reply(w, r, http.StatusOK, waveSnapshot(now), err)
}

// GetWaveGraph shows the plan of a wave.
func (s apiHandlers) GetWaveGraph(w http.ResponseWriter, r *http.Request, id api.WaveParam) {
	g, err := s.cfg.Waves.Graph(r.Context(), hub.WaveID(id))
	s.reply(w, r, http.StatusOK, waveGraph(g), err)
}

// SpawnWave starts a wave.
func (s apiHandlers) SpawnWave(w http.ResponseWriter, r *http.Request, id api.WaveParam, params api.SpawnWaveParams) {
	mutate(s.Server, w, r, verb[api.WaveSpawn, waveChanged]{
		key: params.IdempotencyKey, path: id,
		do: func(ctx context.Context, q receipt.Request, b api.WaveSpawn) (waveChanged, error) {
			return s.changedWave(ctx)(s.cfg.Waves.Spawn(ctx, q, hub.WaveID(id), waveTime(b.TimeoutSecs)))
		},
		show: answered(http.StatusOK, waveMoved),
	})
}

// CancelWave ends a wave and waits for that.
func (s apiHandlers) CancelWave(w http.ResponseWriter, r *http.Request, id api.WaveParam, params api.CancelWaveParams) {
	mutate(s.Server, w, r, verb[api.WaveCancel, waveChanged]{
		key: params.IdempotencyKey, path: id,
		do: func(ctx context.Context, q receipt.Request, b api.WaveCancel) (waveChanged, error) {
			in := wave.CancelInput{Reason: b.Reason, Wait: time.Duration(given(b.WaitMs, cancelWait.Milliseconds())) * time.Millisecond}
			return s.changedWave(ctx)(s.cfg.Waves.Cancel(ctx, q, hub.WaveID(id), in))
		},
		show:  answered(http.StatusOK, waveMoved),
		waits: func(b api.WaveCancel) bool { return given(b.WaitMs, 1) > 0 },
	})
}

// RetryWave runs again what of a wave is not completed.
func (s apiHandlers) RetryWave(w http.ResponseWriter, r *http.Request, id api.WaveParam, params api.RetryWaveParams) {
	mutate(s.Server, w, r, verb[api.WaveRetry, waveChanged]{
		key: params.IdempotencyKey, path: id,
		do: func(ctx context.Context, q receipt.Request, b api.WaveRetry) (waveChanged, error) {
			in := wave.RetryInput{MaxIterations: b.MaxIterations, Reason: b.Reason, TimeoutSecs: waveTime(b.TimeoutSecs), Budget: waveBudget(b.Budget)}
			return s.changedWave(ctx)(s.cfg.Waves.Retry(ctx, q, hub.WaveID(id), in))
		},
		show: answered(http.StatusOK, waveMoved),
	})
}

// AddWaveTask adds a task to a wave that is pending.
func (s apiHandlers) AddWaveTask(w http.ResponseWriter, r *http.Request, id api.WaveParam, params api.AddWaveTaskParams) {
	mutate(s.Server, w, r, verb[api.WaveTaskAdd, waveChanged]{
		key: params.IdempotencyKey, path: id,
		do: func(ctx context.Context, q receipt.Request, b api.WaveTaskAdd) (waveChanged, error) {
			return s.changedWave(ctx)(s.cfg.Waves.AddTask(ctx, q, hub.WaveID(id), waveEntry(b.Task)))
		},
		show:  answered(http.StatusCreated, waveResult),
		waits: func(api.WaveTaskAdd) bool { return true },
	})
}

// UpdateWaveTask changes a task of a wave.
func (s apiHandlers) UpdateWaveTask(w http.ResponseWriter, r *http.Request, id api.WaveParam, token string, params api.UpdateWaveTaskParams) {
	mutate(s.Server, w, r, verb[api.WaveTaskUpdate, waveChanged]{
		key: params.IdempotencyKey, path: id + "/" + token, // a token has no slash
		do: func(ctx context.Context, q receipt.Request, b api.WaveTaskUpdate) (waveChanged, error) {
			return s.changedWave(ctx)(s.cfg.Waves.UpdateTask(ctx, q, hub.WaveID(id), token, waveTaskUpdate(b)))
		},
		show:  answered(http.StatusOK, waveResult),
		waits: func(api.WaveTaskUpdate) bool { return true },
	})
}
