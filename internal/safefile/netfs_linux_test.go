package safefile

import "testing"

func TestMountTypeOfLine(t *testing.T) {
	line := "36 35 0:42 / /mnt/s rw,noatime shared:1 - fuse.sshfs host:/ rw,user_id=0"
	if kind, ok := typeOf(line, "0:42"); !ok || kind != "fuse.sshfs" {
		t.Errorf("got %q %v", kind, ok)
	}
	for _, other := range []string{"0:4", "98:0"} {
		if _, ok := typeOf(line, other); ok {
			t.Errorf("device %s matched", other)
		}
	}
	if _, ok := typeOf("rubbish", "0:42"); ok {
		t.Error("rubbish matched")
	}
}
