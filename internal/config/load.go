package config

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/viper"
)

// The scalar keys, as flags (with "-"), variables and in the file.
const (
	KeyName      = "name"
	KeyListen    = "listen"
	KeyAdvertise = "advertise"
	KeyAPIRemote = "api_remote"
	KeyLogLevel  = "log_level"
	keyWorkers   = "limits.workers"
	keyVerify    = "verify_timeout_secs"
	// KeyWaveLiveness is in seconds, 0 never.
	KeyWaveLiveness = "wave_liveness_secs"
)

var keys = []string{KeyName, KeyListen, KeyAdvertise, KeyAPIRemote, KeyLogLevel, keyWorkers, keyVerify, KeyWaveLiveness}

// Bounds of a verification's time and of a wave's liveness, in seconds.
const (
	defaultVerifySecs = 600
	maxVerifySecs     = 24 * 60 * 60

	defaultLivenessSecs = 90
	maxLivenessSecs     = 30 * 24 * 60 * 60
)

// DefaultListen is the address of a hub that is not configured otherwise.
const DefaultListen = "127.0.0.1:7443"

// Load reads and validates the configuration. flags holds the values of the
// flags that were given, by key; nil for none. Errors about the
// content are *InvalidError and name the key and where it was read. Nothing is created or written.
func Load(flags map[string]any) (Config, error) {
	configDir, dataDir, err := directories()
	if err != nil {
		return Config{}, err
	}
	c := Config{ConfigDir: configDir.Value, DataDir: dataDir.Value, origins: []Origin{configDir, dataDir}}
	doc, err := readDocument(c.ConfigFile())
	if err != nil {
		return Config{}, err
	}
	src := newSources(flags, doc, c.ConfigFile(), os.Getenv)
	if err := c.fill(src, doc); err != nil {
		return Config{}, err
	}
	return c, c.validate(src)
}

func (c *Config) fill(src sources, doc document) (err error) {
	v := src.viper
	c.Name, c.Listen = v.GetString(KeyName), v.GetString(KeyListen)
	c.LogLevel = strings.ToLower(v.GetString(KeyLogLevel))
	c.Advertise = list(v.Get(KeyAdvertise))
	if c.APIRemote, err = boolean(v.Get(KeyAPIRemote)); err != nil {
		return src.invalid(KeyAPIRemote, "%v", err)
	}
	if c.Limits.Workers, err = integer(v.Get(keyWorkers)); err != nil {
		return src.invalid(keyWorkers, "%v", err)
	}
	secs, err := integer(v.Get(keyVerify))
	if err != nil {
		return src.invalid(keyVerify, "%v", err)
	}
	c.VerifyTimeout = time.Duration(secs) * time.Second
	if c.WaveLivenessSecs, err = integer(v.Get(KeyWaveLiveness)); err != nil {
		return src.invalid(KeyWaveLiveness, "%v", err)
	}
	c.Limits.PerAgent = doc.Limits.PerAgent
	c.Agents, err = doc.agents(src.file)
	for _, key := range keys {
		c.origins = append(c.origins, Origin{Key: key, Value: text(v.Get(key)), Source: src.of(key)})
	}
	c.mapOrigins("file " + src.file)
	return err
}

// mapOrigins adds what only the file can say.
func (c *Config) mapOrigins(source string) {
	for _, name := range slices.Sorted(maps.Keys(c.Limits.PerAgent)) {
		c.origins = append(c.origins, Origin{Key: "limits.per_agent." + name, Value: text(c.Limits.PerAgent[name]), Source: source})
	}
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		c.origins = append(c.origins, Origin{Key: "agents." + name, Value: c.Agents[name].summary(), Source: source})
	}
}

// summary says in a few words what an entry does.
func (a AgentDefinition) summary() string {
	words := strings.Join(a.Command, " ")
	if a.Like != "" {
		words = strings.TrimSpace("like " + a.Like + " " + words)
	}
	return words
}

// sources merges the layers and remembers where each key came from.
type sources struct {
	viper *viper.Viper
	flags map[string]any
	set   map[string]any // what the file says
	file  string
	env   func(string) string
}

func newSources(flags map[string]any, doc document, file string, env func(string) string) sources {
	v := viper.New()
	v.SetDefault(KeyName, hostName())
	v.SetDefault(KeyListen, DefaultListen)
	v.SetDefault(KeyAdvertise, []string{})
	v.SetDefault(KeyAPIRemote, false)
	v.SetDefault(KeyLogLevel, "info")
	v.SetDefault(keyWorkers, 0)
	v.SetDefault(keyVerify, defaultVerifySecs)
	v.SetDefault(KeyWaveLiveness, defaultLivenessSecs)
	s := sources{viper: v, flags: flags, set: doc.scalars(), file: file, env: env}
	for key, value := range s.set {
		v.SetDefault(key, value)
	}
	for _, key := range keys {
		if value := env(variable(key)); value != "" {
			v.Set(key, value)
		}
	}
	for key, value := range flags {
		v.Set(key, value)
	}
	return s
}

func (d document) scalars() map[string]any {
	out := map[string]any{}
	put(out, KeyName, d.Name)
	put(out, KeyListen, d.Listen)
	put(out, KeyAPIRemote, d.APIRemote)
	put(out, KeyLogLevel, d.LogLevel)
	put(out, keyWorkers, d.Limits.Workers)
	put(out, keyVerify, d.Verify)
	put(out, KeyWaveLiveness, d.WaveLiveness)
	if d.Advertise != nil {
		out[KeyAdvertise] = d.Advertise
	}
	return out
}

func put[T any](out map[string]any, key string, value *T) {
	if value != nil {
		out[key] = *value
	}
}

func variable(key string) string {
	return "WAVEHUB_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// of says where the effective value of the key came from.
func (s sources) of(key string) string {
	if _, ok := s.flags[key]; ok {
		return "flag --" + strings.ReplaceAll(key, "_", "-")
	}
	if s.env(variable(key)) != "" {
		return "environment " + variable(key)
	}
	if _, ok := s.set[key]; ok {
		return "file " + s.file
	}
	return "default"
}

func (s sources) invalid(key, format string, args ...any) error {
	return invalid("", nil, "%s (%s): %s", key, s.of(key), fmt.Sprintf(format, args...))
}
