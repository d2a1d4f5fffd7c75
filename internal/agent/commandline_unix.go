//go:build unix

package agent

func otherShell(err error) ([]string, string, error) { return nil, "", err }
