package wire

import "github.com/wavehub/wavehub/internal/hub"

// Sizes in bytes, of which those that vary are the most that they can be.
const (
	headerSize = 2
	digestSize = 4
	countSize  = 2 // of a list: 14 bits hold every limit
	textSize   = 2 // of a text beside its bytes; an id takes no more than its text
	numberSize = 9
	stepSize   = 10
	placeSize  = countSize
	lengthSize = 3 // of a payload
	byteSize   = 1
	// itemFixed is all of an item but its texts and payload.
	itemFixed = placeSize + 2*stepSize + byteSize + 3*textSize + lengthSize
	// workerFixed is all of a worker's presence but its texts and usage.
	workerFixed = 2*numberSize + 4*textSize + byteSize
)

// ItemSize is the most bytes that an item takes in a frame, whatever else is in
// it; credit is counted in it. It is a function of the item alone, so that both
// sides of a link count the same. A frame with more than one item of a Dispatch
// takes less.
func ItemSize(it hub.Item) int {
	return itemFixed + len(it.Dispatch) + len(it.ID) + len(it.Kind) + len(it.Payload)
}

// PresenceSize is the most bytes that one worker takes in a frame.
func PresenceSize(p hub.Presence) int {
	return workerFixed + len(p.Dispatch) + len(p.Process) + len(p.WaitingFor) + len(p.Usage)
}

// ItemsRoom is how many bytes of items, by ItemSize, one Items frame holds
// whatever they are.
const ItemsRoom = MaxFrame - headerSize - countSize - digestSize
