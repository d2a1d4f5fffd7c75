package server

import (
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/openapi/api"
)

func planFinding(f hub.Finding) api.PlanFinding {
	return api.PlanFinding{Code: f.Code, Tasks: append([]string{}, f.Tasks...), Detail: f.Detail, Line: f.Line}
}
