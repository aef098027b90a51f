package preview

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// ParkingPrefix begins the hostname of a parking guest; the VMID of its guest follows.
const ParkingPrefix = "pvrx-parking-"

// ParkingGuest is a guest on a spare VMID that an operation made, known by its hostname or by the record in its own notes.
type ParkingGuest struct {
	VMID      guest.VMID
	Guest     guest.VMID // whose parking guest it is; 0 when nothing says so
	Label     string
	Node      string
	Status    string
	Guarded   bool   // protected: nobody deletes it by mistake
	Operation string // the operation it belongs to, "" when that is over
	Created   int64  // of its root file system; 0 when no storage tells
	Age       string
	Holds     []HeldVolume // everything but its own root file system
	Remedy    string
}

// UnnamedVolume is a volume whose owner the storage knows and that no guest names, in any section.
type UnnamedVolume struct {
	Volume    string
	Node      string // "" on a shared storage
	Owner     guest.VMID
	Exists    guest.Presence // its owner
	Operation string         // an operation that may be looking for it
	Size      guest.Bytes
	Created   int64
	Age       string
	Certain   bool // every guest that could name it was read
	Remedy    string
}

// LeftArchive is a backup that was made of a parking guest: it holds another guest's data under a VMID that nobody looks for
// (hazard A4). Or it is the archive of an OCI image that no container is made from, which belongs to no VMID.
type LeftArchive struct {
	Archive   string
	Node      string
	VMID      guest.VMID // 0: of an image
	Guest     guest.VMID // whose data it may hold; 0 when nothing says so
	Size      guest.Bytes
	Created   int64
	Age       string
	Protected bool
	Notes     string
	Remedy    string
}

// BlockProblem is a block in a guest's notes that is not usable: it is reported, and obeyed by nobody.
type BlockProblem struct {
	VMID     guest.VMID
	Label    string
	Node     string
	Kind     string
	Sentence string
	Remedy   string
}

func vmid(text string) (guest.VMID, bool) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 100 || n > 999999999 {
		return 0, false
	}
	return guest.VMID(n), true
}

// parkingGuests are those that are there now, with or without an operation.
func (s *surveyor) parkingGuests() []ParkingGuest {
	var all []ParkingGuest
	for _, g := range s.f.Guests {
		of, is := s.parking[g.VMID]
		if !is || !s.wanted(g.Node, g.VMID, of) {
			continue
		}
		p := ParkingGuest{
			VMID: g.VMID, Guest: of, Label: s.label(g.VMID), Node: guest.Printable(g.Node), Status: guest.Printable(g.Status), Guarded: g.Guard,
			Operation: s.operationOf(g.VMID),
		}
		for _, n := range g.Named {
			if n.Key != "rootfs" {
				p.Holds = append(p.Holds, HeldVolume{Key: guest.Printable(n.Key), Volume: guest.Printable(n.ID.String()), Holder: g.VMID, Size: s.size(g.Node, n.ID)})
				continue
			}
			for _, v := range s.f.Volumes {
				if v.ID == n.ID && (v.Shared || v.Node == g.Node) {
					p.Created, p.Age = v.Created, s.age(v.Created)
				}
			}
		}
		p.Remedy = s.parkingRemedy(g, p)
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b ParkingGuest) int { return cmp.Compare(a.VMID, b.VMID) })
	return all
}

// operationOf is the open operation that uses a VMID, as its guest or for parking.
func (s *surveyor) operationOf(id guest.VMID) string {
	for _, h := range s.heads {
		if h.Parking == id || h.Guest == id {
			return h.Operation
		}
	}
	return ""
}

func (s *surveyor) parkingRemedy(g SurveyedGuest, p ParkingGuest) string {
	switch {
	case p.Operation != "":
		return fmt.Sprintf("It belongs to %s: neither start nor destroy it, and go on with the operation.", p.Operation)
	case !g.Read:
		return "Its configuration cannot be read, so what it holds is not known: leave it alone until it can."
	}
	lift := ""
	if g.Guard {
		lift = fmt.Sprintf("%s set %d --protection 0 && ", tool(g.Kind), g.VMID)
	}
	root := "As root on " + p.Node + ": "
	if len(p.Holds) == 0 {
		return fmt.Sprintf("No operation uses it and it holds nothing. %s%s%s destroy %d.", root, lift, tool(g.Kind), g.VMID)
	}
	var moves []string
	for _, v := range p.Holds {
		_, taken := s.byID[p.Guest].Values[v.Key]
		if p.Guest == 0 || taken || s.exists(p.Guest) != guest.Present || !slices.ContainsFunc(g.Named, func(n SectionVolume) bool { return n.Key == v.Key && n.Section == "" }) {
			continue
		}
		moves = append(moves, fmt.Sprintf(handsOver(g.Kind), g.VMID, v.Key, p.Guest, v.Key))
	}
	if len(moves) < len(p.Holds) {
		return fmt.Sprintf("No operation uses it, and it holds %s. Do not destroy it: find out first which guest these belong to, and hand each over with \"%s\" as root on %s.", holds(p.Holds), strings.NewReplacer("%s", "KEY", "%d", "VMID").Replace(handsOver(g.Kind)), p.Node)
	}
	return fmt.Sprintf("No operation uses it, and it holds volumes of %s %d. Stop both, compare with the guest's own, then: %s%s%s; when it holds nothing any more: %s destroy %d.", g.Kind, p.Guest, root, lift, strings.Join(moves, " && "), tool(g.Kind), g.VMID)
}

// handsOver is the command that gives a volume to another guest: from, key, to, key.
func handsOver(kind guest.Kind) string {
	if kind == guest.KindVM {
		return "qm disk move %d %s --target-vmid %d --target-disk %s"
	}
	return "pct move-volume %d %s --target-vmid %d --target-volume %s"
}

// unnamed are the volumes that have an owner and that no guest names. A copy that replication keeps is none.
func (s *surveyor) unnamed() []UnnamedVolume {
	named := map[located]bool{}
	read := true
	for _, g := range s.f.Guests {
		read = read && g.Read
		for _, n := range g.Named {
			named[located{g.Node, n.ID}], named[located{"", n.ID}] = true, true
		}
	}
	var all []UnnamedVolume
	for _, row := range s.f.Volumes {
		owner := row.Owner
		if shape, err := guest.ReadVolume(row.Type, row.ID); owner == 0 && err == nil {
			owner = shape.Owner
		}
		if owner == 0 || row.Content != "rootdir" && row.Content != "images" || named[located{row.Node, row.ID}] || !s.wanted(row.Node, owner, s.parking[owner]) {
			continue
		}
		g, listed := s.byID[owner]
		copied := listed && !row.Shared && g.Node != row.Node
		if copied && s.f.Replicated.Value[owner] {
			continue
		}
		v := UnnamedVolume{
			Volume: guest.Printable(row.ID.String()), Node: guest.Printable(row.Node), Owner: owner, Exists: s.exists(owner), Operation: s.operationOf(owner), Size: row.Size,
			Created: row.Created, Age: s.age(row.Created), Certain: s.f.AllSeen && read && (!copied || s.f.Replicated.OK),
		}
		v.Remedy = v.remedy(g.Kind, copied)
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b UnnamedVolume) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), strings.Compare(a.Volume, b.Volume), strings.Compare(a.Node, b.Node))
	})
	return all
}

func (v UnnamedVolume) remedy(kind guest.Kind, copied bool) string {
	where := "As root on " + cmp.Or(v.Node, "any node") + ": "
	switch {
	case v.Operation != "":
		return fmt.Sprintf("%s may be looking for it: go on with the operation first, and touch nothing of it by hand.", v.Operation)
	case !v.Certain:
		return "Not every guest that may name it could be read (see what was not seen): look from a login that sees all before doing anything."
	case copied:
		return fmt.Sprintf("Its guest is on another node, so that it is what a migration or a replication left. %spvesm list %s --vmid %d; when nobody needs it: pvesm free %s.", where, storageOf(v.Volume), v.Owner, v.Volume)
	case v.Exists == guest.Present:
		return fmt.Sprintf("%s%s rescan --vmid %d puts it into the guest's configuration as unused, where it can be looked at, mounted or removed.", where, tool(kind), v.Owner)
	case v.Exists == guest.Absent:
		return fmt.Sprintf("Its guest does not exist. Look at what it holds; when nobody needs it: %spvesm free %s.", where, v.Volume)
	}
	return "Whether its guest exists cannot be seen: leave it alone until it can."
}

func storageOf(volume string) string {
	storage, _, _ := strings.Cut(volume, ":")
	return storage
}

// archives are those of VMIDs that are, were or would be parking guests.
func (s *surveyor) archives() []LeftArchive {
	var all []LeftArchive
	for _, row := range s.f.Volumes {
		if row.Content != "backup" || row.Owner == 0 {
			continue
		}
		of, is := s.parking[row.Owner]
		for _, h := range append(slices.Clone(s.heads), s.strays...) {
			if h.Parking == row.Owner && h.Guest != row.Owner {
				of, is = h.Guest, true
			}
		}
		if about, found := strings.CutPrefix(row.Notes, ParkingPrefix); found { // Proxmox's default notes are the guest's name
			number, _, _ := strings.Cut(about, " ")
			if id, ok := vmid(number); ok && !is {
				of, is = id, true
			}
		}
		if g, there := s.byID[row.Owner]; there && !is && g.VMID != 0 {
			continue // an ordinary guest that happens to have a VMID of the range
		}
		if !is && (row.Owner < s.f.ParkingFrom || row.Owner > s.f.ParkingTo) || !s.wanted(row.Node, row.Owner, of) {
			continue
		}
		a := LeftArchive{
			Archive: guest.Printable(row.ID.String()), Node: guest.Printable(row.Node), VMID: row.Owner, Guest: of, Size: row.Size, Created: row.Created,
			Age: s.age(row.Created), Protected: row.Protected, Notes: guest.Printable(row.Notes),
		}
		whose := "the guest whose volumes waited there"
		if of != 0 {
			whose = fmt.Sprintf("CT %d", of)
		}
		a.Remedy = fmt.Sprintf("A backup job made it while CT %d held volumes of %s: it may be the newest copy of that data. Keep it until there is a newer archive of %s; then, as root on %s: pvesm free %s.", a.VMID, whose, whose, cmp.Or(a.Node, "any node"), a.Archive)
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b LeftArchive) int {
		return cmp.Or(cmp.Compare(a.VMID, b.VMID), strings.Compare(a.Archive, b.Archive))
	})
	return all
}

// problems are blocks in notes that nobody can use, and records that bind nobody.
func (s *surveyor) problems() []BlockProblem {
	var all []BlockProblem
	add := func(g SurveyedGuest, kind, sentence, remedy string) {
		if s.wanted(g.Node, g.VMID) {
			all = append(all, BlockProblem{VMID: g.VMID, Label: s.label(g.VMID), Node: guest.Printable(g.Node), Kind: kind, Sentence: guest.Printable(sentence), Remedy: remedy})
		}
	}
	for _, g := range s.f.Guests {
		for _, p := range g.Notes.Problems {
			remedy := "Take the block out of the notes by hand, when the guest and its parking guest show that no operation is half done."
			switch p.Kind {
			case guest.ProblemForeign:
				remedy = "Nobody obeys it. Take it out of the notes by hand, or leave it: the next operation on this guest does."
			case guest.ProblemNewer:
				remedy = "Use the pvrx that wrote it, or a newer one."
			case guest.ProblemDamaged, guest.ProblemTruncated, guest.ProblemDuplicated, guest.ProblemOlder:
			}
			add(g, p.Kind.String(), p.Sentence, remedy)
		}
		if j := g.Notes.Journal; j != nil && g.VMID != j.Guest && g.VMID != j.Parking {
			add(g, "misplaced", fmt.Sprintf("its notes hold a record of %s, which is about CT %d", j.Operation, j.Guest), "Nobody obeys it. Take it out of the notes by hand.")
		}
	}
	for _, h := range s.strays {
		add(s.byID[h.Parking], "stray", fmt.Sprintf("it carries a record of %s that CT %d knows nothing of: it was closed, or the guest's notes were overwritten", h.Operation, h.Guest),
			fmt.Sprintf("Compare the mounts of CT %d with what CT %d holds before doing anything to either.", h.Guest, h.Parking))
	}
	slices.SortStableFunc(all, func(a, b BlockProblem) int { return cmp.Compare(a.VMID, b.VMID) })
	return all
}
