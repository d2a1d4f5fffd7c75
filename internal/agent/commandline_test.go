package agent

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

func TestScript(t *testing.T) {
	table, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	plan, err := table.Script(`test "a b" = 'a b'; echo $?`, dir)
	if err != nil || len(plan.Files) != 1 || plan.Argv[len(plan.Argv)-1] != plan.Files[0].Path || filepath.Dir(plan.Files[0].Path) != dir {
		t.Fatalf("%+v %v", plan, err)
	}
	if !filepath.IsAbs(plan.Argv[0]) || !strings.HasSuffix(string(plan.Files[0].Data), "$?\n") {
		t.Errorf("%+v", plan)
	}
	for _, bad := range [][2]string{{" \n", dir}, {"a\x00", dir}, {"a", "relative"}} {
		if _, err := table.Script(bad[0], bad[1]); !hub.IsCode(err, hub.CodeInvalidArgument) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
