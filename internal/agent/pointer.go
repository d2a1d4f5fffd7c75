package agent

// PromptFile is the name of the file that holds a prompt which does not go as
// an argument or by the keyboard.
const PromptFile = promptFile

// Pointer is the one line that stands for a prompt in a file.
func Pointer(path string) string {
	return "Your task is in the file " + path + " - read all of it, then do what it says."
}
