//go:build !linux

package proc

import "errors"

// NewGroup fails: only Linux has cgroups.
func NewGroup(string) (string, error) { return "", errors.ErrUnsupported }

// RemoveGroup does nothing: only Linux has cgroups.
func RemoveGroup(string) error { return nil }

func groupMembers(string) ([]Identity, error) { return nil, nil }

func killGroup(string) {}
