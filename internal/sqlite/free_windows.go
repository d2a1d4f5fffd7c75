package sqlite

import (
	"fmt"
	"syscall"
	"unsafe"
)

var getDiskFreeSpaceEx = syscall.NewLazyDLL("kernel32.dll").NewProc("GetDiskFreeSpaceExW")

// volumeOf looks at dir's volume.
func volumeOf(dir string) (volume, error) {
	p, err := syscall.UTF16PtrFromString(dir)
	if err != nil {
		return volume{}, fmt.Errorf("reading the free space of %s: %w", dir, err)
	}
	var free, size uint64
	ok, _, err := getDiskFreeSpaceEx.Call(uintptr(unsafe.Pointer(p)), uintptr(unsafe.Pointer(&free)), uintptr(unsafe.Pointer(&size)), 0)
	if ok == 0 {
		return volume{}, fmt.Errorf("reading the free space of %s: %w", dir, err)
	}
	return volume{size: int64(size), free: int64(free)}, nil
}
