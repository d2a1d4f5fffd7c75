package safefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// createNew gives the file a protected access list when the mode names no one
// but the owner; otherwise the folder's list is inherited.
func createNew(path string, mode fs.FileMode) (*os.File, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, &fs.PathError{Op: "create", Path: path, Err: err}
	}
	var attrs *windows.SecurityAttributes
	if mode&0o077 == 0 {
		if attrs, err = ownerOnly(); err != nil {
			return nil, err
		}
	}
	h, err := windows.CreateFile(name, windows.GENERIC_WRITE, windows.FILE_SHARE_READ, attrs,
		windows.CREATE_NEW, windows.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "create", Path: path, Err: err}
	}
	return os.NewFile(uintptr(h), path), nil
}

// replaceWaits is how long a reader that holds the target open (a virus
// scanner, an indexer) is waited for, about two seconds in all.
var replaceWaits = []time.Duration{5, 10, 20, 40, 80, 150, 250, 400, 500, 500}

func replace(from, to string) error {
	src, err := windows.UTF16PtrFromString(from)
	if err != nil {
		return err
	}
	dst, err := windows.UTF16PtrFromString(to)
	if err != nil {
		return err
	}
	const flags = windows.MOVEFILE_REPLACE_EXISTING | windows.MOVEFILE_WRITE_THROUGH
	for _, wait := range replaceWaits {
		if err = windows.MoveFileEx(src, dst, flags); !held(err) {
			return err
		}
		time.Sleep(wait * time.Millisecond)
	}
	return windows.MoveFileEx(src, dst, flags)
}

func held(err error) bool {
	return errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_ACCESS_DENIED) ||
		errors.Is(err, windows.ERROR_LOCK_VIOLATION)
}

// SyncDir does nothing on Windows, where folders cannot be flushed: names are
// made durable by write-through moves and the file system's journal.
func SyncDir(string) error { return nil }

func mkdirPrivate(path string) error {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return &fs.PathError{Op: "mkdir", Path: path, Err: err}
	}
	attrs, err := ownerOnly()
	if err != nil {
		return err
	}
	if err := windows.CreateDirectory(name, attrs); err != nil {
		return &fs.PathError{Op: "mkdir", Path: path, Err: err}
	}
	return nil
}

func openNoFollow(path string) (*os.File, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	const share = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	const flags = windows.FILE_FLAG_OPEN_REPARSE_POINT | windows.FILE_FLAG_BACKUP_SEMANTICS
	h, err := windows.CreateFile(name, windows.GENERIC_READ, share, nil, windows.OPEN_EXISTING, flags, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(h), path), nil
}

const whoMayRead = windows.GENERIC_READ | windows.GENERIC_ALL | windows.FILE_READ_DATA
const whoMayWrite = windows.GENERIC_WRITE | windows.GENERIC_ALL | windows.FILE_WRITE_DATA | windows.FILE_APPEND_DATA |
	windows.DELETE | windows.WRITE_DAC | windows.WRITE_OWNER

func checkFile(f *os.File, _ fs.FileInfo, path string) error {
	sd, err := windows.GetSecurityInfo(windows.Handle(f.Fd()), windows.SE_FILE_OBJECT,
		windows.OWNER_SECURITY_INFORMATION|windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		return fmt.Errorf("reading the access list of %s: %w", path, err)
	}
	return checkSecurity(sd, path, whoMayRead|whoMayWrite)
}

func checkDirOwner(path string, _ fs.FileInfo) error {
	sd, err := windows.GetNamedSecurityInfo(path, windows.SE_FILE_OBJECT,
		windows.OWNER_SECURITY_INFORMATION|windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		return fmt.Errorf("reading the access list of %s: %w", path, err)
	}
	return checkSecurity(sd, path, whoMayWrite)
}

func checkSecurity(sd *windows.SECURITY_DESCRIPTOR, path string, mask windows.ACCESS_MASK) error {
	me, err := currentUser()
	if err != nil {
		return err
	}
	owner, _, err := sd.Owner()
	if err != nil {
		return fmt.Errorf("reading the owner of %s: %w", path, err)
	}
	if !trusted(owner, me) {
		return &UnsafeError{path, "belongs to another user", `take ownership: takeown /f "` + path + `"`}
	}
	open, err := grantsOthers(sd, me, mask)
	if err != nil {
		return fmt.Errorf("reading the access list of %s: %w", path, err)
	}
	if open {
		return &UnsafeError{path, "is open to other users", `icacls "` + path + `" /inheritance:r /grant:r "%USERNAME%:(OI)(CI)F"`}
	}
	return nil
}

func grantsOthers(sd *windows.SECURITY_DESCRIPTOR, me *windows.SID, mask windows.ACCESS_MASK) (bool, error) {
	acl, _, err := sd.DACL()
	if errors.Is(err, windows.ERROR_OBJECT_NOT_FOUND) || (err == nil && acl == nil) {
		return true, nil // no list at all: everyone may do everything
	}
	if err != nil {
		return false, err
	}
	for i := range uint32(acl.AceCount) {
		var ace *windows.ACCESS_ALLOWED_ACE
		if err := windows.GetAce(acl, i, &ace); err != nil {
			return false, err
		}
		if ace.Header.AceType != windows.ACCESS_ALLOWED_ACE_TYPE || ace.Mask&mask == 0 {
			continue
		}
		if !trusted((*windows.SID)(unsafe.Pointer(&ace.SidStart)), me) {
			return true, nil
		}
	}
	return false, nil
}

// trusted are we ourselves and those who can do anything anyway; an entry for
// "creator owner" stands for whoever creates files, here ourselves.
func trusted(sid, me *windows.SID) bool {
	return sid.Equals(me) || sid.IsWellKnown(windows.WinBuiltinAdministratorsSid) ||
		sid.IsWellKnown(windows.WinLocalSystemSid) || sid.IsWellKnown(windows.WinCreatorOwnerSid)
}

func currentUser() (*windows.SID, error) {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return nil, fmt.Errorf("reading the user of this process: %w", err)
	}
	return user.User.Sid, nil
}

func ownerOnly() (*windows.SecurityAttributes, error) {
	me, err := currentUser()
	if err != nil {
		return nil, err
	}
	sd, err := windows.SecurityDescriptorFromString("O:" + me.String() + "D:P(A;OICI;FA;;;" + me.String() + ")(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)")
	if err != nil {
		return nil, fmt.Errorf("making an access list: %w", err)
	}
	return &windows.SecurityAttributes{
		Length:             uint32(unsafe.Sizeof(windows.SecurityAttributes{})),
		SecurityDescriptor: sd,
	}, nil
}
