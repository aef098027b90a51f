package guest

// Firewall is everything a guest's own firewall holds, in the words of the API: what a destroy deletes with the guest.
// Positions and digests are left out; the order of Rules is the order of evaluation.
type Firewall struct {
	Options map[string]string
	Aliases []map[string]string
	IPSets  []IPSet
	Rules   []map[string]string
}

// IPSet is a named set of addresses.
type IPSet struct {
	Name    string
	Comment string
	Entries []map[string]string
}

// Empty reports whether there is nothing to put back.
func (f Firewall) Empty() bool {
	return len(f.Options) == 0 && len(f.Aliases) == 0 && len(f.IPSets) == 0 && len(f.Rules) == 0
}
