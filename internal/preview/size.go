package preview

import (
	"fmt"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// wantedSize is the size of the new root file system: as asked for, else as large as the present one, in whole MiB because
// Proxmox rounds requests down to those.
func (j *judge) wantedSize() guest.Bytes {
	if j.w.Rootfs.Size > 0 {
		return j.w.Rootfs.Size.CeilMiB()
	}
	return j.rootfs().Size.CeilMiB()
}

// judgeSize compares bytes, never texts: the present size is the storage's, and must agree with the configuration's.
func (j *judge) judgeSize() {
	old := j.rootfs()
	if old.id == (guest.VolumeID{}) || !j.owned(old) {
		return // no volume, or one that is blocked for better reasons
	}
	unreadable := func(found string) {
		j.block(Blocker{
			Code: CodeSizeUnreadable, Subject: "rootfs", Found: found,
			Remedy: "A size that is not certain is not guessed at: grant Datastore.Audit on the storage, or correct the volume or its size= by \"pct rescan\" on the node.",
		})
	}
	row := j.f.Volumes[old.id]
	text := old.Mounted.SizeText
	configured, sure, err := guest.ReadSize(text)
	switch {
	case !old.listed:
		unreadable(fmt.Sprintf("Storage %s does not list %s, so its size in bytes is not known.", old.id.Storage, old.Volume))
		return
	case row.Size <= 0:
		unreadable(fmt.Sprintf("Storage %s tells no size for %s.", old.id.Storage, old.Volume))
		return
	case text != "" && err != nil:
		unreadable(fmt.Sprintf("rootfs has size=%s, which cannot be read.", text))
		return
	case text != "" && !agree(configured, sure, row.Size):
		unreadable(fmt.Sprintf("The configuration says size=%s (%d bytes), storage %s says %d bytes.", text, int64(configured), old.id.Storage, int64(row.Size)))
		return
	}
	if asked := j.w.Rootfs.Size; asked > 0 && asked < row.Size {
		j.block(Blocker{
			Code: CodeRootfsShrink, Subject: "rootfs", Attribute: "rootfs.size",
			Found:  fmt.Sprintf("rootfs has %s, size = %q asks for %d.", exact(row.Size), j.askedText(), int64(asked)),
			Remedy: fmt.Sprintf("Ask for at least %s, or leave size out to keep it.", atLeast(row.Size)),
		})
	}
}

// agree compares both readings of a size. A bare number means bytes to Proxmox and KiB to some writers.
func agree(configured guest.Bytes, sure bool, stored guest.Bytes) bool {
	return configured == stored || !sure && configured/guest.KiB == stored
}

func (j *judge) askedText() string {
	if j.w.Rootfs.SizeText != "" {
		return j.w.Rootfs.SizeText
	}
	return j.w.Rootfs.Size.ConfigText()
}

// atLeast is the smallest request that does not shrink, as a size that can be pasted.
func atLeast(b guest.Bytes) string {
	if b < guest.GiB {
		return fmt.Sprintf("%dMiB", int64(b.CeilMiB()/guest.MiB))
	}
	whole := b / guest.GiB
	if b%guest.GiB != 0 {
		whole++
	}
	return fmt.Sprintf("%dGiB", int64(whole))
}
