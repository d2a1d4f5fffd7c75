package sqlite

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// Invariant 16: queries of hot paths search, they never scan or sort.
func TestPlans(t *testing.T) {
	s := openTest(t, Config{}, builtin)
	page := func(f store.DispatchFilter) string { q, _ := dispatchPage(f, 0); return q }
	terminal := func(f store.TerminalFilter) string { q, _ := terminalPage(f, 0); return q }
	question := func(f store.QuestionFilter) string { q, _ := questionPage(f, 0); return q }
	hist := func(f store.HistoryFilter) string { q, _ := historyQuery("b", f); return q }
	searches(t, s, map[string]search{
		"Receipt":            {receiptQuery, "receipts"},
		"UnfinishedReceipts": {unfinished, "receipts_unfinished"},
		"SweepReceipts":      {oldReceipts, "PRIMARY KEY"},
		"Credential":         {credentialQuery, "credentials"},
		"Run":                {runQuery, "runs"},
		"RunList":            {runPage, "PRIMARY KEY"},
		"Binding":            {bindingQuery, "bindings_context"},
		"Holder":             {holderQuery, "bindings_run"},
		"Audits":             {auditQuery, "audits_run"},
		"TaskList":           {taskPage, "tasks_run"},
		"TaskList by state":  {taskStatePage, "tasks_run_state"},
		"Dependents":         {dependentQuery, "task_deps_dependency"},
		"DispatchList run":   {page(store.DispatchFilter{Run: "r"}), "dispatches_run"},
		"DispatchList task":  {page(store.DispatchFilter{Task: "t"}), "dispatches_task"},
		"DispatchList peer":  {page(store.DispatchFilter{Peer: "p"}), "dispatches_peer"},
		"DispatchList live":  {page(store.DispatchFilter{Live: true}), "dispatches_live"},
		"DispatchList all":   {page(store.DispatchFilter{}), "PRIMARY KEY"},
		"Deliverable":        {deliverable, "messages_live"},
		"Between":            {betweenQuery, "messages"},
		"Wakes":              {wakesQuery + " LIMIT 1", "messages_live"},
		"History":            {hist(store.HistoryFilter{}), "messages"},
		"History unread":     {hist(store.HistoryFilter{Unread: true, Types: []hub.MessageType{hub.TypeStatus}}), "messages_live"},
		"StaleKept":          {staleQuery, "messages_stale"},
		"QuestionList":       {question(store.QuestionFilter{}), "PRIMARY KEY"},
		"QuestionList run":   {question(store.QuestionFilter{Run: "r"}), "questions_run"},
		"QuestionList state": {question(store.QuestionFilter{State: "pending"}), "questions_state"},
		"QuestionList both":  {question(store.QuestionFilter{Run: "r", State: "pending"}), "questions_"},
		"PendingQuestions":   {pendingQuestions, "questions_pending"},
		"Append":             {bumpMailbox, "mailboxes"},
		"OpenAttachments":    {openAttachments, "attachments_open"},
		"Hold":               {holdQuery, "holds"},
		"Baseline":           {baselineQuery, "baselines"},
		"OpenBeside":         {openBeside, "attachments_"},
		"Worker":             {workerQuery, "workers"},
		"WorkerByName":       {workerByName, "workers_name"},
		"WorkerAttachment":   {workerAttachment, "attachments_worker"},
		"WorkerAttachments":  {workerAttachments, "attachments_worker_open"},
		"Session":            {sessionQuery, "sessions"},
		"SessionNamed":       {sessionNamed, "sessions"},
		"Queue":              {queueQuery, "relay_queues"},
		"FirstOpen":          {firstOpen, "relay_queues_open"},
		"IDsFrom":            {idsFrom("messages"), "messages"},
		"IDsFrom requests":   {requestsFrom, "receipts"},
		"IDsEnding":          {idsEnding("tasks"), "tasks_end"},
		"ItemsAfter":         {itemsAfter, "relay_items_feed"},
		"QueueItems":         {queueItems, "relay_items"},
		"Enqueue":            {bumpQueue, "relay_queues"},
		"AckQueue":           {itemPlace, "relay_items"},
		"ItemsBetween":       {itemsBetween, "relay_items_feed"},
		"Log":                {feedPlace, "relay_feeds"},
		"Backlog":            {backlogQuery, "relay_feeds"},
		"ParkedQueues":       {parkedQueues, "relay_queues_parked"},
		"ParkedQueues count": {countParked, "relay_queues_parked"},
		"QueuesFrom":         {queuesFrom, "PRIMARY KEY"},
		"CursorsFrom":        {cursorsFrom, "PRIMARY KEY"},
		"ParkedCursors":      {parkedCursors, "relay_cursors_parked"},
		"Mark":               {markQuery, "relay_marks"},
		"Marked":             {markedItem, "relay_marks_item"},
		"SweepQueue":         {sweepItems, "relay_items"},
		"Cursor":             {cursorQuery, "relay_cursors"},
		"Feed":               {feedQuery, "feed_states"},
		"SwapDispatch":       {swapDispatch, "dispatches"},
		"PeerByFingerprint":  {peerFingerprint, "peers_fingerprint"},
		"PeerRemoved":        {peerRemoved, "peers_removed"},
		"PeersOf":            {peersOf, "peers_lineage"},
		"PeerByName":         {peerByName, "peers_name"},
		"OpenInvites":        {openInvites, "invites_open"},
		"RepoByName":         {repoByFold, "repos"},
		"WorktreesNamed":     {worktreesNamed, "worktrees"},
		"WorktreeList":       {worktreesOf, "worktrees_repo"},
		"AttachmentsOf":      {attachmentsOf, "attachments_home"},
		"AttachedTo":         {attachedTo, "attachments_terminal"},
		"OpenTerminals":      {openTerminals, "terminals_open"},
		"TerminalList":       {terminal(store.TerminalFilter{}), "PRIMARY KEY"},
		"TerminalList live":  {terminal(store.TerminalFilter{Live: true}), "terminals_open"},
		"TerminalList in":    {terminal(store.TerminalFilter{Worktree: "w"}), "terminals_worktree"},
		"WorktreesUnder":     {worktreesUnder, "worktrees_parent"},
		"OpenWorktrees":      {openWorktrees, "worktrees_open"},
	})
}

// Those of waves and of events.
func TestPlansOfWaves(t *testing.T) {
	s := openTest(t, Config{}, builtin)
	events := func(f store.EventFilter) string { q, _ := eventsPage(f); return q }
	waves := func(f store.WaveFilter) string { q, _ := wavePage(f); return q }
	searches(t, s, map[string]search{
		"Wave":              {waveQuery, "waves"},
		"WaveList":          {waves(store.WaveFilter{}), "PRIMARY KEY"},
		"WaveList run":      {waves(store.WaveFilter{Run: "r"}), "waves_run"},
		"WaveList status":   {waves(store.WaveFilter{Status: "s"}), "waves_status"},
		"WaveList both":     {waves(store.WaveFilter{Run: "r", Status: "s"}), "waves_"},
		"RunningWaves":      {runningQuery, "waves_status"},
		"UnfiledWaves":      {unfiledQuery, "waves_unfiled"},
		"WaveFiled":         {fileWave, "waves"},
		"WaveTasks":         {waveTasksQuery, "wave_tasks"},
		"WaveTaskNamed":     {waveTaskNamed, "wave_tasks"},
		"WaveRows":          {waveRowsQuery, "dispatches_task"},
		"WaveRows latest":   {waveLatestQuery, "dispatches"},
		"WaveRow":           {waveRowQuery, "wave_tasks"},
		"WaveOrders":        {waveOrdersQuery, "wave_orders_uid"},
		"WaveUsages":        {waveUsageQuery, "dispatches_task"},
		"SaveWaveProgress":  {updateProgress, "wave_tasks"},
		"SaveWaveEntry":     {updateEntry, "wave_tasks"},
		"MoveWaveOrders":    {moveOrders[1], "wave_orders"},
		"PutWave Tasks":     {unstageTasks, "staged_tasks_uid"},
		"PutWave deps":      {unstageDeps, "staged_deps_uid"},
		"ReplaceWave Tasks": {withdrawTasks, "tasks"},
		"Events":            {events(store.EventFilter{}), "PRIMARY KEY"},
		"Events wave":       {events(store.EventFilter{Wave: "w"}), "events_wave"},
		"Events run":        {events(store.EventFilter{Run: "r"}), "events_run"},
		"AppendEvent":       {eventPlace, "wave_tasks"},
		"SweepEvents":       {sweepEvents, "PRIMARY KEY"},
	})
}

// search is a query and the index that it has to use.
type search struct{ query, index string }

func searches(t *testing.T, s *Store, all map[string]search) {
	t.Helper()
	c, err := s.readers.take(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { s.readers.free <- c }()
	for name, want := range all {
		plan := explain(t, c.sc, want.query)
		if strings.Contains(plan, "SCAN") || !strings.Contains(plan, want.index) {
			t.Errorf("%s, want a search by %s:\n%s", name, want.index, plan)
		}
		if strings.Contains(plan, "TEMP B-TREE") && name != "WorktreesNamed" {
			t.Errorf("%s sorts:\n%s", name, plan)
		}
	}
}

func explain(t *testing.T, db *sql.Conn, query string) string {
	t.Helper()
	args := make([]any, strings.Count(query, "?"))
	rows, err := db.QueryContext(context.Background(), "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(detail + "\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return plan.String()
}
