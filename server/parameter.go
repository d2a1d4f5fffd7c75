package server

import (
	"errors"

	"github.com/wavehub/wavehub/openapi/api"
	"github.com/wavehub/wavehub/openapi/peerapi"
)

// parameterOf names the parameter of a generated router's error.
func parameterOf(err error) string {
	if e, ok := errors.AsType[*api.InvalidParamFormatError](err); ok {
		return e.ParamName
	}
	if e, ok := errors.AsType[*api.TooManyValuesForParamError](err); ok {
		return e.ParamName
	}
	if e, ok := errors.AsType[*peerapi.InvalidParamFormatError](err); ok {
		return e.ParamName
	}
	if e, ok := errors.AsType[*peerapi.TooManyValuesForParamError](err); ok {
		return e.ParamName
	}
	if e, ok := errors.AsType[*peerapi.RequiredHeaderError](err); ok {
		return e.ParamName
	}
	return "parameter"
}
