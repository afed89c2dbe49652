"""The bridge to Keras 3: layers of a model computed by convgrad, on each of its three backends."""
