package hub

import (
	"slices"
	"testing"
)

func TestNeedsOfAStart(t *testing.T) {
	for name, c := range map[string]struct {
		start PeerStart
		want  []string
	}{
		"plain":     {PeerStart{Spec: StartSpec{Agent: "sh", Worktree: "path:/x", Setup: SetupRun, TimeoutMS: 1}}, []string{}},
		"verify":    {PeerStart{Checks: Checks{VerifyCmd: "make"}}, []string{FeatureVerify}},
		"scope":     {PeerStart{Checks: Checks{WriteScope: []string{"a"}}}, []string{FeatureVerify}},
		"attached":  {PeerStart{Spec: StartSpec{Worker: "w-1"}}, []string{FeatureAttached}},
		"resume":    {PeerStart{Spec: StartSpec{ResumeSession: true}}, []string{FeatureResume}},
		"child run": {PeerStart{Spec: StartSpec{MayCoordinate: true}}, []string{FeatureChildRuns}},
		"wave":      {PeerStart{Spec: StartSpec{Wave: &WaveRef{"w1", "a"}}}, []string{FeatureWaves}},
		"several": {PeerStart{Spec: StartSpec{ResumeSession: true, MayCoordinate: true}, Checks: Checks{VerifyCmd: "x"}},
			[]string{FeatureVerify, FeatureResume, FeatureChildRuns}},
	} {
		got := c.start.Needs()
		if !slices.Equal(got, c.want) {
			t.Errorf("%s needs %v, want %v", name, got, c.want)
		}
		if err := OwnOffer().Check("this hub", ContractFederation, got); err != nil {
			t.Errorf("%s: this build lacks it: %v", name, err)
		}
	}
}

func TestOffers(t *testing.T) {
	for name, c := range map[string]struct {
		offer    Offer
		contract string
		features []string
		lacks    bool
	}{
		"all":                    {OwnOffer(), ContractFederation, Features(), false},
		"nothing needed":         {Offer{Contracts: []string{ContractFederation}}, ContractFederation, nil, false},
		"a feature":              {Offer{Contracts: []string{ContractFederation}}, ContractFederation, []string{FeatureVerify}, true},
		"the contract":           {Offer{[]string{"federation/2"}, Features()}, ContractFederation, nil, true},
		"both contracts":         {Offer{[]string{"federation/2", ContractFederation}, nil}, ContractFederation, nil, false},
		"no hello yet":           {Offer{}, ContractFederation, []string{FeatureVerify}, false},
		"no hello yet, future":   {Offer{}, "federation/2", nil, true},
		"a future start to here": {OwnOffer(), "federation/2", nil, true},
	} {
		err := c.offer.Check("it", c.contract, c.features)
		if IsCode(err, CodeCapabilityUnsupported) != c.lacks || (err != nil) != c.lacks {
			t.Errorf("%s: %v", name, err)
		}
	}
}
