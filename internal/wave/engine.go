package wave

// engine is the loop that reconciles running waves.
type engine struct{}
