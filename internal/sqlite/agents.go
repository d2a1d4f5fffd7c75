package sqlite

import "github.com/wavehub/wavehub/internal/hub"

const (
	outputQuery  = `SELECT output FROM outputs WHERE home = ? AND dispatch = ?`
	insertOutput = `INSERT INTO outputs (home, dispatch, output) VALUES (?, ?, ?) ON CONFLICT (home, dispatch) DO UPDATE SET output = excluded.output`

	poolCols   = "agent, class, until, times"
	poolQuery  = `SELECT ` + poolCols + ` FROM agent_pools WHERE agent = ?`
	poolList   = `SELECT ` + poolCols + ` FROM agent_pools ORDER BY agent`
	upsertPool = `INSERT INTO agent_pools (` + poolCols + `) VALUES (?, ?, ?, ?)
		ON CONFLICT (agent) DO UPDATE SET class = excluded.class, until = excluded.until, times = excluded.times`
	deletePool = `DELETE FROM agent_pools WHERE agent = ?`
)

// ArchivedOutput implements store.OutputReader.
func (q querier) ArchivedOutput(home hub.PeerID, d hub.DispatchID) (hub.ArchivedOutput, bool, error) {
	out, ok, err := one(q, func(s scanner, out *hub.ArchivedOutput) error { return s.Scan(fromJSON{out}) }, outputQuery, home, d)
	return out, ok, wrap(err, "reading what was kept of the output of %s", d)
}

// PutArchivedOutput implements store.Outputs.
func (tx *Tx) PutArchivedOutput(home hub.PeerID, d hub.DispatchID, out hub.ArchivedOutput) error {
	_, err := tx.exec(insertOutput, home, d, asJSON{out})
	return wrap(err, "keeping the end of the output of %s", d)
}

func scanPool(s scanner, p *hub.AgentPool) error {
	return s.Scan(&p.Agent, &p.Class, &p.Until, &p.Times)
}

// AgentPool implements store.PoolReader.
func (q querier) AgentPool(agent string) (hub.AgentPool, error) {
	p, ok, err := one(q, scanPool, poolQuery, agent)
	if !ok {
		p = hub.AgentPool{Agent: agent}
	}
	return p, wrap(err, "reading the pool of %s", agent)
}

// AgentPools implements store.PoolReader.
func (q querier) AgentPools() ([]hub.AgentPool, error) {
	ps, err := all(q, scanPool, poolList)
	return ps, wrap(err, "reading the pools")
}

// SaveAgentPool implements store.Pools.
func (tx *Tx) SaveAgentPool(p hub.AgentPool) error {
	_, err := tx.exec(upsertPool, p.Agent, p.Class, p.Until, p.Times)
	return wrap(err, "saving the pool of %s", p.Agent)
}

// DropAgentPool implements store.Pools.
func (tx *Tx) DropAgentPool(agent string) error {
	_, err := tx.exec(deletePool, agent)
	return wrap(err, "dropping the pool of %s", agent)
}
