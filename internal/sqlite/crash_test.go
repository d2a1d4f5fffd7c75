package sqlite

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// crashEnv makes the test binary the process that is killed: it holds the path
// of the store and, after a colon, the prefix of the ids to write.
const crashEnv = "WAVEHUB_SQLITE_CRASH"

func TestMain(m *testing.M) {
	if path, prefix, ok := strings.Cut(os.Getenv(crashEnv), "|"); ok {
		if err := writeUntilKilled(path, prefix); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// writeUntilKilled commits from eight goroutines and prints each id when its
// Update has returned.
func writeUntilKilled(path, prefix string) error {
	s, err := Open(context.Background(), Config{Path: path})
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	var out sync.Mutex
	errs := make(chan error, 8)
	for w := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("%s-%d-%d", prefix, w, i)
				if err := s.Update(context.Background(), store.New, appendMessage(id)); err != nil {
					errs <- err
					return
				}
				out.Lock()
				fmt.Println(id)
				out.Unlock()
			}
		})
	}
	wg.Wait()
	return <-errs
}

func appendMessage(id string) func(store.Tx) error {
	return func(tx store.Tx) error {
		if _, err := tx.Mailbox("run:a"); hub.IsCode(err, hub.CodeMailboxNotFound) {
			if err := tx.PutMailbox(store.Mailbox{Box: "run:a"}); err != nil {
				return err
			}
		}
		_, err := tx.Append(hub.Message{ID: hub.MessageID(id), To: "run:a", Body: strings.Repeat("x", 500)})
		return err
	}
}

// Invariant 1: what was answered is there after kill -9, without holes.
func TestKillLosesNothingAcknowledged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hub.db")
	var acked []string
	for round := range 5 {
		acked = append(acked, killed(t, path, fmt.Sprint("r", round), 100+50*round)...)
		checkAcked(t, path, acked)
	}
	t.Logf("5 kills, %d acknowledged, 0 lost", len(acked))
}

// killed runs a writer until it has acknowledged count rows, kills it and
// returns all that it acknowledged.
func killed(t *testing.T, path, prefix string, count int) (acked []string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashEnv+"="+path+"|"+prefix)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for sc := bufio.NewScanner(out); sc.Scan(); {
		acked = append(acked, sc.Text())
		if len(acked) == count {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || len(acked) < count {
		t.Fatalf("the writer ended by itself after %d rows: %v", len(acked), err)
	}
	if last := acked[len(acked)-1]; !strings.HasPrefix(last, prefix) {
		acked = acked[:len(acked)-1] // a line cut by the kill
	}
	return acked
}

func checkAcked(t *testing.T, path string, acked []string) {
	t.Helper()
	s, err := Open(context.Background(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	err = s.View(context.Background(), func(rx store.Rx) error {
		for _, id := range acked {
			if ok, err := rx.HasMessage(hub.MessageID(id)); err != nil || !ok {
				t.Errorf("%s was acknowledged and is lost: %v", id, err)
			}
		}
		box, err := rx.Mailbox("run:a")
		if err != nil {
			return err
		}
		all, _, err := rx.History("run:a", store.HistoryFilter{Limit: 1 << 20})
		if int64(len(all)) != box.Seq || box.Live != box.Seq {
			t.Errorf("%d messages in a mailbox that counts %d", len(all), box.Seq)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
