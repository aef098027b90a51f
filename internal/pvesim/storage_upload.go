package pvesim

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"mime/multipart"
	"net/http"
	"path"
	"regexp"
	"strings"
)

// uploadedFile is the file part of an upload.
type uploadedFile struct {
	name string
	data []byte
}

// uploadFields are the form fields of an upload in the one order in which Proxmox reads them: it
// looks for each in turn and discards what stands before it.
var uploadFields = []string{"content", "checksum-algorithm", "checksum"}

// readUpload reads a multipart body as Proxmox does: a field out of order is lost, and content as
// the last of three is refused without a word.
func (k *call) readUpload(req *http.Request) error {
	refused := &apiError{status: http.StatusBadRequest, text: "bad request", bare: true}
	if req.ContentLength < 0 {
		return &apiError{status: http.StatusBadRequest, text: "Content-Length is missing", bare: true}
	}
	mr, err := req.MultipartReader()
	if err != nil {
		return refused
	}
	next, seen := 0, 0
	for {
		part, err := mr.NextPart()
		if err != nil {
			// the end of the body without a file, or no multipart body at all
			return refused
		}
		name := part.FormName()
		if name == "filename" {
			return k.readFilePart(part)
		}
		at := -1
		for i, f := range uploadFields {
			if f == name {
				at = i
			}
		}
		if at < 0 {
			continue
		}
		if name == "content" && seen == 2 {
			return refused
		}
		seen++
		if at < next || next == 0 && at != 0 {
			continue
		}
		value, err := io.ReadAll(part)
		if err != nil {
			return refused
		}
		k.params[name] = string(value)
		next = at + 1
	}
}

func (k *call) readFilePart(part *multipart.Part) error {
	data, err := io.ReadAll(part)
	if err != nil {
		return &apiError{status: http.StatusBadRequest, text: "bad request", bare: true}
	}
	k.upload = &uploadedFile{name: part.FileName(), data: data}
	k.params["filename"] = part.FileName()
	return nil
}

var notInFileName = regexp.MustCompile(`[^a-zA-Z0-9_.-]`)

// normalFileName is what Proxmox makes of a file's name.
func normalFileName(name string) string {
	name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	return notInFileName.ReplaceAllString(name, "_")
}

func (s *Server) registerUpload() {
	s.route("POST", "/nodes/{node}/storage/{storage}/upload", uploadFile)
}

func uploadFile(k *call) (any, error) {
	s, err := k.c.storageEnabled(k.vars["storage"], k.node())
	if err != nil {
		return nil, err
	}
	if !s.kind().files {
		return nil, die("can't upload to storage type '%s'", s.typ)
	}
	if k.upload == nil {
		return nil, die("missing temporary file name")
	}
	content, name := k.str("content"), normalFileName(k.str("filename"))
	n, err := s.parse(content + "/" + name)
	if err != nil {
		return nil, paramError("filename", "wrong file extension")
	}
	if !s.has(content) {
		return nil, die("storage '%s' does not support '%s' content", s.id, content)
	}
	node, file := k.node(), k.upload
	algorithm, sum := k.str("checksum-algorithm"), k.str("checksum")
	return k.startTask("imgcopy", "", nil, func(t *task) error {
		t.logf("starting file import from: /var/tmp/pveupload-%032x", k.c.id())
		if algorithm != "" {
			got := hexSum(algorithm, file.data)
			if !strings.EqualFold(got, sum) {
				t.logf("calculating checksum...")
				return die("checksum mismatch: got '%s' != expect '%s'", got, sum)
			}
			t.logf("calculating checksum...OK, checksum verified")
		}
		v := k.c.newVolume(s, n, int64(len(file.data)))
		v.written = v.size
		if content == "vztmpl" {
			v.template = templateFrom(name, file.data)
		}
		s.on(node)[n.own()] = v
		t.logf("target node: %s", node)
		t.logf("target file: %s", s.path(n))
		t.logf("file size is: %d", v.size)
		t.logf("finished file import successfully")
		return nil
	}), nil
}

func hexSum(algorithm string, data []byte) string {
	var h hash.Hash
	switch algorithm {
	case "md5":
		h = md5.New()
	case "sha1":
		h = sha1.New()
	case "sha224":
		h = sha256.New224()
	case "sha256":
		h = sha256.New()
	case "sha384":
		h = sha512.New384()
	case "sha512":
		h = sha512.New()
	default:
		return fmt.Sprintf("unknown algorithm %s", algorithm)
	}
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil))
}
