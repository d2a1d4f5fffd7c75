package wave

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/safefile"
)

// maxFolderFile bounds what is read of one file of a folder of ours.
const maxFolderFile = 512 << 20

// projector keeps the folder of one wave as projection says. It has one user at a
// time. What it remembers is what it has seen or made durable itself; it is empty
// after a restart, and what an error leaves in doubt is forgotten.
type projector struct {
	files   Files
	root    string // the wave's own folder
	claimed bool
	settled map[string]bool  // folders, below the root
	lies    map[string]lying // files, below the root
}

// lying is what a file is known to hold.
type lying struct {
	there     bool
	sum       [sha256.Size]byte
	iteration int               // of a failures.json, 0 if it says none
	key       [sha256.Size]byte // of the file that it was found to be
}

func newProjector(files Files, root string) *projector {
	return &projector{files: files, root: root, settled: map[string]bool{}, lies: map[string]lying{}}
}

// keep makes the folder what files says, writing what differs only. through is the
// last level up to which all have a durable done.json; it counts after an error too.
// What is done stays done when keep is cut anywhere and called again.
func (p *projector) keep(ctx context.Context, files []folderFile) (through int, err error) {
	if err := p.claim(files[0]); err != nil {
		return 0, err
	}
	for _, step := range []func(folderFile) error{p.write, p.clear} {
		for _, f := range files {
			if err := errors.Join(ctx.Err(), step(f)); err != nil {
				return through, fmt.Errorf("%s: %w", filepath.Join(p.root, filepath.FromSlash(f.path)), err)
			}
			if f.isDone() && f.data != nil && f.level == through+1 {
				through = f.level
			}
		}
	}
	return through, nil
}

// claim refuses a folder whose graph.json is not of this wave: another hub, or a
// store that was thrown away, may have one of the same name.
func (p *projector) claim(graph folderFile) error {
	if p.claimed {
		return nil
	}
	if err := p.settle(graph.path); err != nil {
		return err
	}
	raw, err := p.files.Read(p.at(graph.path), maxFolderFile)
	if errors.Is(err, fs.ErrNotExist) {
		p.claimed = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p.at(graph.path), err)
	}
	var lies, own fileHead
	if err := json.Unmarshal(graph.data(), &own); err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &lies); err != nil || lies.Format != own.Format || lies.Mark != own.Mark {
		return hub.Errorf(hub.CodeCheckpointMismatch, "%s is not of this wave; nothing was written", p.at(graph.path))
	}
	p.claimed = true
	return nil
}

func (p *projector) at(name string) string { return filepath.Join(p.root, filepath.FromSlash(name)) }

// write makes a file what it has to contain. A failures.json of a former iteration
// gives way.
func (p *projector) write(f folderFile) error {
	if f.data == nil || f.key != [sha256.Size]byte{} && p.lies[f.path].key == f.key {
		return nil
	}
	data := f.data()
	lies, err := p.look(f, int64(len(data)))
	if err != nil {
		return err
	}
	want := lying{there: true, sum: sha256.Sum256(data), iteration: f.iteration, key: f.key}
	if lies.there && lies.sum == want.sum {
		p.lies[f.path] = want
		return nil
	}
	if f.isFailures() && lies.there && lies.iteration != f.iteration {
		if err := p.retire(f, lies); err != nil {
			return err
		}
	}
	p.forget(f.path)
	if err := p.files.Write(p.at(f.path), data); err != nil {
		return err
	}
	p.settled[path.Dir(f.path)], p.lies[f.path] = true, want
	return nil
}

// clear removes what must not be there.
func (p *projector) clear(f folderFile) error {
	if f.data != nil {
		return nil
	}
	lies, err := p.look(f, 0)
	if err != nil || !lies.there {
		return err
	}
	if f.isFailures() {
		return p.retire(f, lies)
	}
	p.forget(f.path)
	if err := p.files.Remove(p.at(f.path)); err != nil {
		return err
	}
	p.settled[path.Dir(f.path)], p.lies[f.path] = true, lying{}
	return nil
}

// retire keeps a failures.json under the name of its iteration.
func (p *projector) retire(f folderFile, lies lying) error {
	p.forget(f.path)
	if err := p.files.Rename(p.at(f.path), p.at(formerName(f.level, lies.iteration))); err != nil {
		return err
	}
	p.settled[path.Dir(f.path)], p.lies[f.path] = true, lying{}
	return nil
}

// forget has the file and the durability of its name looked at again.
func (p *projector) forget(name string) {
	delete(p.lies, name)
	delete(p.settled, path.Dir(name))
}

// look is what lies at a file's place. Of more than limit bytes it only matters
// that they are others, but for a failures.json.
func (p *projector) look(f folderFile, limit int64) (lying, error) {
	if l, ok := p.lies[f.path]; ok {
		return l, nil
	}
	if f.isFailures() {
		limit = maxFolderFile
	}
	if err := p.settle(f.path); err != nil {
		return lying{}, err
	}
	l, err := p.read(f, limit)
	if err == nil {
		p.lies[f.path] = l
	}
	return l, err
}

func (p *projector) read(f folderFile, limit int64) (lying, error) {
	raw, err := p.files.Read(p.at(f.path), limit)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return lying{}, nil
	case errors.Is(err, safefile.ErrTooLarge):
		return lying{there: true}, nil
	case err != nil:
		return lying{}, err
	}
	l := lying{there: true, sum: sha256.Sum256(raw)}
	var said struct {
		Iteration int `json:"iteration"`
	}
	if f.isFailures() && json.Unmarshal(raw, &said) == nil { // what is no JSON says none
		l.iteration = said.Iteration
	}
	return l, nil
}

func (p *projector) settle(name string) error {
	dir := path.Dir(name)
	if p.settled[dir] {
		return nil
	}
	if err := p.files.Settle(p.at(dir)); err != nil {
		return err
	}
	p.settled[dir] = true
	return nil
}
