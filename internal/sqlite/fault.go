package sqlite

// fault is what a driver error means for the transaction it hit.
type fault uint8

const (
	faultNone fault = iota
	faultOther
	faultBusy
	faultFull
	faultIO
	faultCorrupt
	faultInterrupt
	faultMemory
	faultUnique
)

// SQLite's result codes, https://sqlite.org/rescode.html.
const (
	codeBusy       = 5
	codeLocked     = 6
	codeNoMem      = 7
	codeInterrupt  = 9
	codeIOErr      = 10
	codeCorrupt    = 11
	codeFull       = 13
	codeNotADB     = 26
	codePrimaryKey = 19 | 6<<8
	codeUnique     = 19 | 8<<8
)

// seam is what the rest of the package knows of a driver.
type seam struct {
	name     string
	classify func(error) fault
}

var builtin = seam{name: driverName, classify: classify}

func classify(err error) fault {
	if err == nil {
		return faultNone
	}
	code := resultCode(err)
	if code == codeUnique || code == codePrimaryKey {
		return faultUnique
	}
	switch code & 0xff {
	case codeBusy, codeLocked:
		return faultBusy
	case codeFull:
		return faultFull
	case codeIOErr:
		return faultIO
	case codeCorrupt, codeNotADB:
		return faultCorrupt
	case codeInterrupt:
		return faultInterrupt
	case codeNoMem:
		return faultMemory
	default:
		return faultOther
	}
}

// mayEndTx reports whether SQLite may have rolled the transaction back on its
// own, https://sqlite.org/lang_transaction.html.
func (f fault) mayEndTx() bool {
	switch f {
	case faultFull, faultIO, faultCorrupt, faultInterrupt, faultMemory, faultBusy:
		return true
	case faultNone, faultOther, faultUnique:
		return false
	}
	return true
}
