package server

import (
	"net/http"

	"github.com/wavehub/wavehub/openapi/api"
)

func (s apiHandlers) ListWaves(w http.ResponseWriter, r *http.Request, params api.ListWavesParams) {
	http.NotFound(w, r)
}

func (s apiHandlers) CreateWave(w http.ResponseWriter, r *http.Request, params api.CreateWaveParams) {
	http.NotFound(w, r)
}

func (s apiHandlers) PlanWave(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }

func (s apiHandlers) GetWave(w http.ResponseWriter, r *http.Request, wave api.WaveParam) {
	http.NotFound(w, r)
}

func (s apiHandlers) CancelWave(w http.ResponseWriter, r *http.Request, wave api.WaveParam, params api.CancelWaveParams) {
	http.NotFound(w, r)
}

func (s apiHandlers) GetWaveGraph(w http.ResponseWriter, r *http.Request, wave api.WaveParam) {
	http.NotFound(w, r)
}

func (s apiHandlers) RetryWave(w http.ResponseWriter, r *http.Request, wave api.WaveParam, params api.RetryWaveParams) {
	http.NotFound(w, r)
}

func (s apiHandlers) SpawnWave(w http.ResponseWriter, r *http.Request, wave api.WaveParam, params api.SpawnWaveParams) {
	http.NotFound(w, r)
}

func (s apiHandlers) AddWaveTask(w http.ResponseWriter, r *http.Request, wave api.WaveParam, params api.AddWaveTaskParams) {
	http.NotFound(w, r)
}

func (s apiHandlers) UpdateWaveTask(w http.ResponseWriter, r *http.Request, wave api.WaveParam, token string, params api.UpdateWaveTaskParams) {
	http.NotFound(w, r)
}
