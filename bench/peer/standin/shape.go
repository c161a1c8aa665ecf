package standin

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/template"
)

//go:embed objects.tmpl
var shapes string

// shape is a template: pieces of text, and between them values by their number.
type shape struct {
	text  []string
	value []int
	names []string
}

// variant is what differs between the templates of one kind.
type variant struct {
	DRA, Big, Bare                    bool
	Env, Mounts, Conds, Rdma, Devices []string
}

// compile runs text/template once; what stands between two ~ is filled in for each object.
func compile(name string, v variant) *shape {
	var text, compact bytes.Buffer
	if err := template.Must(template.New("").Parse(shapes)).ExecuteTemplate(&text, name, v); err != nil {
		panic(err)
	}
	if err := json.Compact(&compact, text.Bytes()); err != nil {
		panic(fmt.Sprintf("%s: %v", name, err))
	}
	s := &shape{}
	for i, part := range strings.Split(compact.String(), "~") {
		if i%2 == 0 {
			s.text = append(s.text, part)
			continue
		}
		at := slices.Index(s.names, part)
		if at < 0 {
			at, s.names = len(s.names), append(s.names, part)
		}
		s.value = append(s.value, at)
	}
	return s
}

// pack puts what the shape needs of values behind each other, each with its length before it.
func (s *shape) pack(values map[string]string) (out []byte) {
	for _, name := range s.names {
		out = append(binary.LittleEndian.AppendUint16(out, uint16(len(values[name]))), values[name]...)
	}
	return bytes.Clone(out)
}

// fill appends the template with the packed values to out.
func (s *shape) fill(out, vals []byte) []byte {
	var at [32][]byte
	for i := range s.names {
		n := 2 + int(binary.LittleEndian.Uint16(vals))
		at[i], vals = vals[2:n], vals[n:]
	}
	for i, part := range s.text {
		if out = append(out, part...); i < len(s.value) {
			out = append(out, at[s.value[i]]...)
		}
	}
	return out
}
