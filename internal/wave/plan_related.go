package wave

// ancestry is which tasks a task depends on, through others too, all by rank. A
// row ends with the task's own rank, so that the rows of n tasks take n²/16 bytes:
// 25 MB for 20 000. They are made when the first is asked for.
type ancestry struct {
	deps     [][]int32
	rank, at []int32
	rows     []ranks
}

// of is the set of the ranks that the task of a rank depends on.
func (a *ancestry) of(r int) ranks {
	if a.rows == nil {
		a.build()
	}
	return a.rows[r]
}

// build goes by rank: what a task depends on has a lower level and is done.
func (a *ancestry) build() {
	a.rows = triangle(len(a.at))
	for r, i := range a.at {
		row := a.rows[r]
		for _, dep := range a.deps[i] {
			if d := a.rank[dep]; !row.has(d) {
				row.join(a.rows[d])
				row.add(d)
			}
		}
	}
}

// triangle makes sets for as many ranks, each for those below its own.
func triangle(total int) []ranks {
	size := 0
	for r := range total {
		size += wordsOf(r)
	}
	all, rows := make([]uint64, size), make([]ranks, total)
	for r := range rows {
		rows[r], all = all[:wordsOf(r):wordsOf(r)], all[wordsOf(r):]
	}
	return rows
}
