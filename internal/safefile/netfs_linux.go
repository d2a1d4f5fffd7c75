package safefile

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

const magicFUSE = 0x65735546

var networkMagic = map[uint32]string{
	0x6969: "nfs", 0x517b: "smb", 0xff534d42: "cifs", 0xfe534d42: "smb2",
	0x5346414f: "afs", 0x6b414653: "afs", 0x73757245: "coda", 0x564c: "ncp",
	0x00c36400: "ceph", 0x0bd00bd0: "lustre", 0x01161970: "gfs2", 0x7461636f: "ocfs2",
}

// localFUSE are the FUSE file systems that keep their data on this machine.
var localFUSE = []string{
	"fuseblk", "virtiofs", "fuse.fuse-overlayfs", "fuse.overlayfs", "fuse.ntfs-3g", "fuse.ntfs",
	"fuse.exfat", "fuse.bindfs", "fuse.mergerfs", "fuse.gocryptfs", "fuse.encfs", "fuse.cryfs", "fuse.ext2",
}

func mountedOver(path string) (string, bool, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return "", false, err
	}
	if name, ok := networkMagic[uint32(st.Type)]; ok {
		return name, true, nil
	}
	if uint32(st.Type) != magicFUSE {
		return "", false, nil
	}
	kind, err := mountType(path)
	if err != nil {
		return "", false, err
	}
	return kind, !slices.Contains(localFUSE, kind), nil
}

// mountType returns the type of the mount with the device number of path, such
// as "fuse.sshfs", from the list of the process's own mounts.
func mountType(path string) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return "", err
	}
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	defer f.Close()
	device := fmt.Sprintf("%d:%d", unix.Major(uint64(st.Dev)), unix.Minor(uint64(st.Dev)))
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if kind, ok := typeOf(lines.Text(), device); ok {
			return kind, nil
		}
	}
	if err := lines.Err(); err != nil {
		return "", err
	}
	return "fuse", nil
}

// typeOf reads one line of mountinfo: "id parent major:minor root point
// options [tags] - type source options".
func typeOf(line, device string) (string, bool) {
	left, right, ok := strings.Cut(line, " - ")
	if !ok {
		return "", false
	}
	before, after := strings.Fields(left), strings.Fields(right)
	if len(before) < 3 || len(after) < 1 || before[2] != device {
		return "", false
	}
	return after[0], true
}
