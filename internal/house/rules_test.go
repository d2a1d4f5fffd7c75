package house

import "slices"

const modulePath = "github.com/wavehub/wavehub"

// leaves may be imported by every package that lists them and import none of
// this module's packages themselves.
var leaves = []string{
	"internal/backoff", "internal/capfile", "internal/clock", "internal/group", "internal/id", "internal/keystore",
	"internal/metrics", "internal/osservice", "internal/safefile", "internal/safetext", "internal/signal",
	"internal/wake",
}

// everything is the entry of the packages that may import all but testOnly.
const everything = "*"

// testOnly are imported by tests and by each other, never by the product.
// A name that ends in "/..." stands for the package and all below it.
var testOnly = []string{"internal/testkit/...", "internal/storetest", "internal/e2e/...", "internal/sim", "internal/house", "server/servertest"}

// importRules says which of this module's packages each package may import
// outside its tests. A package that is not a key is not allowed to exist; an
// import that is not listed is not allowed to be made.
var importRules = map[string][]string{
	"internal/hub":         {"internal/id"},
	"internal/store":       {"internal/hub"},
	"internal/receipt":     withLeaves("internal/hub", "internal/store"),
	"internal/run":         withLeaves("internal/hub", "internal/store", "internal/receipt"),
	"internal/mail":        withLeaves("internal/hub", "internal/store", "internal/receipt"),
	"internal/dispatch":    withLeaves(belowDispatch...),
	"internal/work":        withLeaves(belowWork...),
	"internal/wave":        withLeaves(append(slices.Clone(belowWave), "internal/wave/intake")...),
	"internal/wave/intake": {"internal/hub"},
	"internal/fanout":      withLeaves(append(slices.Clone(belowWave), "internal/wave")...),

	"internal/peer":     withLeaves("internal/hub", "internal/store", "internal/receipt", "openapi/peerapi"),
	"internal/proc":     withLeaves("internal/hub"),
	"internal/agent":    withLeaves("internal/hub"),
	"internal/spool":    withLeaves("internal/hub"),
	"internal/terminal": withLeaves("internal/hub", "internal/proc"),
	"internal/worktree": withLeaves("internal/hub", "internal/proc"),
	"internal/sqlite":   withLeaves("internal/hub", "internal/store"),
	"internal/config":   withLeaves(),

	"internal/agent/transcript": withLeaves("internal/hub"),

	"relay/wire":        {"internal/hub"},
	"relay":             withLeaves("internal/hub", "relay/wire"),
	"openapi/api":       {},
	"openapi/peerapi":   {"internal/hub"},
	"server/servertest": withLeaves("openapi/api", "server"),
	"server": withLeaves("openapi/api", "openapi/peerapi", "internal/hub", "internal/store", "internal/receipt",
		"internal/run", "internal/mail", "internal/dispatch", "internal/work", "internal/wave", "internal/peer"),

	"client":       withLeaves("openapi/api"),
	"internal/mcp": {"client"},
	"internal/cli": withLeaves("client", "internal/hub", "internal/config", "internal/daemon", "internal/proc", "internal/terminal",
		"internal/spool", "internal/mcp"),
	"internal/daemon": {everything},

	"cmd/wavehub":   {"internal/cli"},
	"cmd/fakeagent": {},
	"deploy/demo":   withLeaves("client"),
	"deploy/soak":   withLeaves("client", "openapi/api", "internal/hub", "internal/config", "internal/proc"),

	"internal/storetest":   withLeaves("internal/hub", "internal/store"),
	"internal/testkit/...": {everything},
	"internal/e2e/...":     {everything},
	"internal/sim":         {},
	"internal/house":       {},
}

var (
	belowDispatch = []string{"internal/hub", "internal/store", "internal/receipt", "internal/run", "internal/mail"}
	belowWork     = append(slices.Clone(belowDispatch), "internal/dispatch")
	belowWave     = append(slices.Clone(belowWork), "internal/work")
)

func withLeaves(more ...string) []string { return append(slices.Clone(leaves), more...) }
