package store

import "github.com/wavehub/wavehub/internal/hub"

// WaveFilter selects waves; empty fields do not filter.
type WaveFilter struct {
	Status hub.WaveStatus
	Run    hub.RunID
}

// WaveReader reads waves and their tasks.
type WaveReader interface {
	// Wave is wave_not_found for one that there is not.
	Wave(hub.WaveID) (hub.Wave, error)
	WaveList(WaveFilter, Page) (ws []hub.Wave, next int64, err error)
	// RunningWaves are the oldest first.
	RunningWaves() ([]hub.WaveID, error)
	// UnfiledWaves are the final ones, the oldest first, whose checkpoint folder does
	// not show their last change.
	UnfiledWaves() ([]hub.WaveID, error)
	// WaveTasks are all tasks as declared, WaveRows with their present state.
	WaveTasks(hub.WaveID) ([]hub.WaveTask, error)
	WaveRows(hub.WaveID) ([]hub.WaveRow, error)
	// WaveRow is one of them; false if no running or other wave has the Task.
	WaveRow(hub.TaskID) (hub.WaveRow, bool, error)
	// WaveTaskNamed is task_not_found for a token that the wave does not have.
	WaveTaskNamed(hub.WaveID, string) (hub.WaveTask, error)
	WaveOrders(hub.WaveID) ([]hub.WaveOrder, error)
	// WaveUsages are what the settled Dispatches of the wave's Tasks used.
	WaveUsages(hub.WaveID) ([]hub.DispatchUsage, error)
}

// Waves keeps waves. A wave of any size is stored in parts: StageWaveTasks, in
// as many transactions as it takes, keeps tasks and their Tasks under the uid of a
// wave that does not exist; PutWave makes the wave, and with it all of them, there
// at once.
type Waves interface {
	WaveReader
	// StageWaveTasks stores some tasks of a wave, with what it gives its Task. Of a
	// wave that is there it stores the tasks alone: their Tasks are stored already.
	StageWaveTasks(hub.WaveUID, []hub.WaveTask, []hub.Task) error
	// StageWaveOrders stores some of its orders.
	StageWaveOrders(hub.WaveUID, []hub.WaveOrder) error
	// DropStaged forgets what was staged for a wave, DropLeftovers what was staged
	// for waves that do not exist.
	DropStaged(hub.WaveUID) error
	DropLeftovers() error
	// PutWave makes the wave of what was staged; wave_exists if its name was ever used.
	PutWave(hub.Wave) error
	// SaveWave replaces the record of a wave and raises its version.
	SaveWave(hub.Wave) error
	// ReplaceWave makes w, of what was staged for its uid, in the place of the wave
	// of the same name whose uid is old. Of old's Tasks those that nothing was begun
	// with are cancelled; the others stay as they are.
	ReplaceWave(old hub.WaveUID, w hub.Wave) error
	// SaveWaveEntry replaces what was declared of a task, SaveWavePlace its level and
	// sub-wave.
	SaveWaveEntry(hub.WaveTask) error
	SaveWavePlace(hub.WaveTask) error
	// MoveWaveOrders gives a wave the orders that were staged for from, in the place
	// of its own.
	MoveWaveOrders(from, to hub.WaveUID) error
	// WaveFiled notes that the checkpoint folder of a wave shows a version of it. It
	// changes nothing else: no version is raised, and nothing is signalled.
	WaveFiled(uid hub.WaveUID, version int64) error
	// SaveWaveProgress stores what the engine wrote down of one task.
	SaveWaveProgress(hub.WaveTask) error
}

// EventFilter selects events; empty fields do not filter.
type EventFilter struct {
	Wave hub.WaveID
	Run  hub.RunID
}

// EventReader reads the log of events.
type EventReader interface {
	// Events are those behind a sequence, in order, at most limit and 8 MiB.
	Events(f EventFilter, after int64, limit int) ([]hub.WaveEvent, error)
	// EventRange is the highest sequence that was ever dropped and the last that was
	// given, 0 for none: behind gone every event is kept, before it those of waves
	// that have not ended.
	EventRange() (gone, last int64, err error)
}

// Events keeps the log of events.
type Events interface {
	EventReader
	// AppendEvent gives an event its sequence and its time. One of a Task that a
	// wave has gets the wave, token, index and total of it. It signals TopicEvent.
	AppendEvent(hub.WaveEvent) (seq int64, err error)
	// SweepEvents drops events from before the instant, oldest first, at most
	// limit, but none of a wave that has not ended. It returns how many are gone.
	SweepEvents(before hub.Micros, limit int) (int, error)
}
