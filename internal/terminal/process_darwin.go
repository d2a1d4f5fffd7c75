package terminal

// descriptorDir lists the descriptors of the process that reads it.
const descriptorDir = "/dev/fd"
