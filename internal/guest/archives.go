package guest

import "slices"

// Archives returns the volume ids of the image archives that the notes name: in the contract, in the one that a container was
// restored or cloned with, and in a record. Whoever removes an archive asks all guests first.
func (n Notes) Archives() []string {
	var named []string
	add := func(app *Application) {
		if app == nil {
			return
		}
		for _, archive := range []string{app.Archive, app.Previous} {
			if archive != "" && !slices.Contains(named, archive) {
				named = append(named, archive)
			}
		}
	}
	for _, contract := range []*Contract{n.Contract, n.Foreign} {
		if contract != nil {
			add(contract.App)
		}
	}
	if n.Journal != nil && n.Journal.App != nil {
		add(&n.Journal.App.Next)
		add(n.Journal.App.Was)
	}
	return named
}
