package cli

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wavehub/wavehub/client"
)

// flagWants says what the values of a flag are, by the flag's type. Every type of
// which a value can be refused is here, which a test sees to.
var flagWants = map[string]string{
	"bool":        "true or false",
	"duration":    "a time with its unit, such as 500ms, 60s or 10m",
	"int":         "a whole number",
	"int64":       "a whole number",
	"stringSlice": "values with commas between them; one with a comma or a quotation mark is put in quotation marks",
}

// badFlag words what the parser of the command line found, for people who do not
// know it.
func badFlag(cmd *cobra.Command, err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		name := e.GetFlag().Name
		return ofFlag(cmd, name, "--%s takes %s, not %q", name, flagWants[e.GetFlag().Value.Type()], e.GetValue())
	}
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return ofFlag(cmd, e.GetFlag().Name, "--%s needs a value", e.GetFlag().Name)
	}
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		dashes := "--"
		if e.GetSpecifiedShortnames() != "" {
			dashes = "-"
		}
		return ofFlag(cmd, e.GetSpecifiedName(), "has no flag %s%s", dashes, e.GetSpecifiedName())
	}
	if e, ok := errors.AsType[*pflag.InvalidSyntaxError](err); ok {
		return misused(cmd, "cannot read %q as a flag", e.GetSpecifiedFlag())
	}
	return misused(cmd, "%v", err)
}

// ofFlag is misused with the flag named.
func ofFlag(cmd *cobra.Command, name, format string, args ...any) error {
	err := misused(cmd, format, args...)
	if e, ok := errors.AsType[*client.Error](err); ok {
		e.Field = name
	}
	return err
}
