// Package servertest holds what tests of the API share: a handler that holds
// every answer against the OpenAPI document.
package servertest
