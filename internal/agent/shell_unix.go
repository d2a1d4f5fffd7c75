//go:build unix

package agent

func findShell() (string, error) { return find("sh") }
