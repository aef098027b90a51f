package oci

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
)

// Outline is what can be said of an archive before it is fetched.
type Outline struct {
	// Name is the file name that belongs to the image on a storage: the same image always has it, and no other.
	Name string
	// Size is the archive's size in bytes, exactly. A file of the right name and another size is not this archive.
	Size int64
	// Manifest is the digest of the manifest that the archive holds. It differs from the image's when that one is written in
	// Docker's media types, which Proxmox does not read.
	Manifest Digest
	// Download is how many bytes its layers have: what a fetch takes.
	Download int64
}

// Outline returns what an image's archive will be. It reads one manifest and no blob.
func (r *Resolver) Outline(ctx context.Context, image Image) (Outline, error) {
	op := "outline " + image.String()
	c, err := r.content(ctx, op, image)
	if err != nil {
		return Outline{}, err
	}
	l, err := layoutOf(c, configBlob{})
	if err != nil {
		return Outline{}, r.translate(ctx, op, image.Reference, err)
	}
	return Outline{Name: ArchiveName(image.Reference, image.Manifest), Size: l.size, Manifest: c.digest, Download: l.layers()}, nil
}

// ArchiveName returns the file name of an image's archive, "pvrx-nginx-0123456789ab.tar": the last part of the repository and
// the beginning of the digest of the platform's manifest. Proxmox takes it as it is.
func ArchiveName(ref Reference, manifest Digest) string {
	short := ref.Repository[strings.LastIndexByte(ref.Repository, '/')+1:]
	if len(short) > 60 {
		short = short[:60]
	}
	return "pvrx-" + short + "-" + manifest.Short() + ".tar"
}

// Archive is a fetched and verified image in the form that Proxmox unpacks. It lives in a nameless temporary file until Close.
type Archive struct {
	Outline
	// SHA256 is the hash of the whole archive, in hexadecimal digits.
	SHA256 string
	// Config is the image's configuration.
	Config Config

	file *os.File
}

// Reader returns the archive from its beginning. Several readers do not disturb each other; none may be used after Close.
func (a *Archive) Reader() *io.SectionReader { return io.NewSectionReader(a.file, 0, a.Size) }

// Close gives the disk space back.
func (a *Archive) Close() error { return discard(a.file) }

// spool makes the file that an archive is written to. Where the system allows it the file has no name from the beginning, so
// that not even a killed process leaves it behind.
func spool(folder string) (*os.File, error) {
	file, err := os.CreateTemp(folder, "pvrx-*.tar")
	if err != nil {
		return nil, &diskError{cause: err}
	}
	_ = os.Remove(file.Name())
	return file, nil
}

func discard(file *os.File) error {
	err := file.Close()
	if runtime.GOOS == "windows" { // where a file keeps its name while it is open
		err = errors.Join(err, os.Remove(file.Name()))
	}
	return err
}

// diskError is a local file that cannot be written or read.
type diskError struct{ cause error }

func (e *diskError) Error() string { return "the image cannot be kept here: " + clip(e.cause.Error()) }
func (e *diskError) Unwrap() error { return e.cause }
