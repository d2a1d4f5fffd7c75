package agent

import "strings"

// Shell is the built-in launcher that runs the Task's text as a shell script.
const Shell = "sh"

// shell runs a script with sh; on Windows that is the one of Git for Windows.
func shell() profile { return scripted("task.sh", "sh") }

// cmd runs a batch file without the AutoRun commands and without echoing it.
func cmd() profile { return scripted("task.cmd", "cmd", "/d", "/q", "/c") }

// powershell runs a script file. The policy holds for this process only: by
// itself Windows runs no script files at all.
func powershell() profile {
	return scripted("task.ps1", "powershell", "-NoLogo", "-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-File")
}

func scripted(file string, command ...string) profile {
	return profile{
		command: command,
		modes:   map[Mode]ModeSpec{ModeHeadless: {Deliver: DeliverFile, Ready: ReadyLaunch}},
		script:  file,
	}
}

// scriptText is a script as its shell reads it: cmd finds labels only where
// lines end with CRLF, PowerShell takes a file without a mark for the system's
// own code page.
func scriptText(ext, text string) []byte {
	switch ext {
	case ".cmd":
		text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
	case ".ps1":
		text = "\ufeff" + text
	}
	return []byte(text)
}
