package sqlite

import (
	"fmt"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

const (
	receiptCols  = "space, key, principal, generation, op, sum, state, stage, status, body, object, run, created_at"
	receiptQuery = `SELECT ` + receiptCols + ` FROM receipts WHERE space = ? AND key = ?`
	unfinished   = `SELECT COUNT(*) FROM receipts WHERE principal = ? AND state IN ('running', 'unknown')`

	oldReceipts = `SELECT rid, created_at FROM receipts
		WHERE rid > (SELECT receipts_swept FROM meta WHERE id = 1) ORDER BY rid LIMIT ?`
	dropBodies = `UPDATE receipts SET body = NULL
		WHERE rid > (SELECT receipts_swept FROM meta WHERE id = 1) AND rid <= ? AND state = 'done' AND principal <> 'engine'`
	setSwept = `UPDATE meta SET receipts_swept = ? WHERE id = 1`

	credentialCols  = "sum, kind, subject, home, generation"
	credentialQuery = `SELECT ` + credentialCols + ` FROM credentials WHERE sum = ?`
	dropCredential  = `DELETE FROM credentials WHERE sum = ?`
)

var (
	insertReceipt    = insertInto("receipts", receiptCols)
	updateReceipt    = updateSet("receipts", receiptCols, 2)
	insertCredential = insertInto("credentials", credentialCols) + ` ON CONFLICT (sum) DO NOTHING`
)

func scanReceipt(s scanner, r *store.Receipt) error {
	return s.Scan(&r.Space, &r.Key, &r.Principal, &r.Generation, &r.Op, &r.Sum, &r.State, &r.Stage,
		&r.Status, &r.Body, &r.Object, &r.Run, &r.CreatedAt)
}

func receiptArgs(r store.Receipt) []any {
	return []any{r.Space, r.Key, r.Principal, r.Generation, r.Op, r.Sum, r.State, r.Stage,
		r.Status, blob(r.Body), r.Object, r.Run, r.CreatedAt}
}

// Receipt implements store.ReceiptReader.
func (q querier) Receipt(space string, key hub.RequestID) (store.Receipt, bool, error) {
	r, ok, err := one(q, scanReceipt, receiptQuery, space, key)
	return r, ok, wrap(err, "reading receipt %s", key)
}

// PutReceipt implements store.Receipts.
func (tx *Tx) PutReceipt(r store.Receipt) error {
	_, err := tx.exec(insertReceipt, receiptArgs(r)...)
	return wrap(err, "putting receipt %s", r.Key)
}

// SaveReceipt implements store.Receipts.
func (tx *Tx) SaveReceipt(r store.Receipt) error {
	missing := hub.Errorf(hub.CodeRequestNotFound, "there is no receipt of %s", r.Key)
	return wrap(tx.save(missing, updateReceipt, keysLast(receiptArgs(r), 2)...), "saving receipt %s", r.Key)
}

// UnfinishedReceipts implements store.Receipts.
func (tx *Tx) UnfinishedReceipts(principal string) (int, error) {
	n, _, err := one(tx.querier, scanInt, unfinished, principal)
	return n, wrap(err, "counting the receipts of %s", principal)
}

// SweepReceipts implements store.Receipts. Receipts are appended, so that their
// rid orders them by age; it stops at the first one that is too young.
func (tx *Tx) SweepReceipts(before hub.Micros, limit int) (passed int, err error) {
	last := int64(0)
	err = tx.each(func(s scanner) (bool, error) {
		var rid int64
		var made hub.Micros
		if err := s.Scan(&rid, &made); err != nil || made >= before {
			return false, err
		}
		last, passed = rid, passed+1
		return true, nil
	}, oldReceipts, limit)
	if err != nil || passed == 0 {
		return 0, wrap(err, "looking for old receipts")
	}
	if _, err := tx.exec(dropBodies, last); err != nil {
		return 0, wrap(err, "dropping old answers")
	}
	_, err = tx.exec(setSwept, last)
	return passed, wrap(err, "noting the sweep")
}

func scanInt(s scanner, n *int) error { return s.Scan(n) }

func scanCredential(s scanner, c *store.Credential) error {
	return s.Scan(&c.Sum, &c.Kind, &c.Subject, &c.Home, &c.Generation)
}

// Credential implements store.CredentialReader.
func (q querier) Credential(sum string) (store.Credential, bool, error) {
	c, ok, err := one(q, scanCredential, credentialQuery, sum)
	return c, ok, wrap(err, "reading a credential")
}

// PutCredential implements store.Credentials.
func (tx *Tx) PutCredential(c store.Credential) error {
	n, err := tx.exec(insertCredential, c.Sum, c.Kind, c.Subject, c.Home, c.Generation)
	if err != nil || n > 0 {
		return wrap(err, "putting a credential")
	}
	have, _, err := tx.Credential(c.Sum)
	if err == nil && have != c {
		err = fmt.Errorf("putting a credential: another %s credential has this sum", have.Kind)
	}
	return err
}

// DropCredential implements store.Credentials.
func (tx *Tx) DropCredential(sum string) error {
	_, err := tx.exec(dropCredential, sum)
	return wrap(err, "dropping a credential")
}
