// The optimizer of the first shipped biLM: Adam at 3e-3, 6,144 tokens per batch.
import 'ladder.libsonnet'
