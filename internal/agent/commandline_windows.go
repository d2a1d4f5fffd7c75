package agent

// otherShell is the command interpreter of the system. The file's path is one
// of the hub's own and plain.
func otherShell(error) ([]string, string, error) {
	shell, err := find("cmd.exe")
	return []string{shell, "/d", "/c"}, "verify.cmd", err
}
